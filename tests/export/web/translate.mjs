// node translate.mjs EXPORT < [{sentences, options}]: translations, and the attention of the first sentence; or an error.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

// LiteRT's script takes Node for a place where scripts are no modules.
Object.assign(globalThis, {require: createRequire(import.meta.url), __dirname: "."});
const folder = pathToFileURL(`${process.argv[2]}/`);
const {Translator} = await import(new URL("translator.js", folder));
const {unpacked} = await import(new URL("files.js", folder));
const read = async (name) => unpacked(name, new Uint8Array(readFileSync(new URL(name, folder))));
const translator = await Translator.load(folder, {read});
const answers = [];
for (const {sentences, options} of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    const found = await translator.translate(sentences, options);
    const {n, ...others} = options;
    answers.push({found, attention: await translator.attention(sentences[0], others)});
  } catch (error) {
    answers.push({error: error.message});
  }
}
process.stdout.write(JSON.stringify(answers));
