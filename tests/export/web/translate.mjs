// node translate.mjs EXPORT < [{sentences, options, prefix}]: translations, and the attention and the steps of the first
// sentence; or an error.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

// LiteRT's script takes Node for a place where scripts are no modules.
Object.assign(globalThis, {require: createRequire(import.meta.url), __dirname: "."});
const folder = pathToFileURL(`${process.argv[2]}/`);
const {Translator} = await import(new URL("translator.js", folder));
const {attention, searchSteps} = await import(new URL("inside.js", folder));
const {unpacked} = await import(new URL("files.js", folder));
const read = async (name) => unpacked(name, new Uint8Array(readFileSync(new URL(name, folder))));
const translator = await Translator.load(folder, {read});
const answers = [];
for (const {sentences, options, prefix} of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    const found = await translator.translate(sentences, options);
    const {n, ...others} = options;
    const [weights, steps] = [
      await attention(translator, sentences[0], others),
      await searchSteps(translator, sentences[0], {...others, prefix}),
    ];
    answers.push({found, attention: weights, steps});
  } catch (error) {
    answers.push({error: error.message});
  }
}
process.stdout.write(JSON.stringify(answers));
