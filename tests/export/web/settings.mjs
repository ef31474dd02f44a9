// node settings.mjs EXPORT < [[name, value]]: for each setting, why a translator refuses it, or null.
import {readFileSync} from "node:fs";
import {pathToFileURL} from "node:url";

const folder = process.argv[2];
const {Translator} = await import(pathToFileURL(`${folder}/translator.js`));
const translator = new Translator(JSON.parse(readFileSync(`${folder}/tf_transformer.json`, "utf8")), null, null, null);
const answers = JSON.parse(readFileSync(0, "utf8")).map(([name, value]) => {
  try {
    translator.changed({[name]: value});
    return null;
  } catch (error) {
    return error.message;
  }
});
process.stdout.write(JSON.stringify(answers));
