// node tokens.mjs PAGE < {blanks, of: [{model, size, lines, ids}]}: the ids of lines, and the texts of ids, by each model.
import {readFileSync} from "node:fs";
import {pathToFileURL} from "node:url";

const {Vocabulary} = await import(pathToFileURL(`${process.argv[2]}/vocabulary.js`));
const {blanks, of} = JSON.parse(readFileSync(0, "utf8"));
const answers = of.map(({model, size, lines, ids}) => {
  const vocabulary = new Vocabulary(readFileSync(model), size, blanks);
  return {ids: lines.map((line) => vocabulary.encode(line)), texts: ids.map((each) => vocabulary.decode(each))};
});
process.stdout.write(JSON.stringify(answers));
