/**
 * A .tflite file with one of its signatures, for arrays of given sizes.
 *
 * LiteRT in the browser cannot resize an input, so the sizes are written into a copy of the file before it is loaded.
 * Loading takes some milliseconds. The format is that of FlatBuffers: offsets are relative to where they are written.
 */

const RESHAPE = 22;
const MODEL = {codes: 1, graphs: 2, buffers: 4, signatures: 7};
const GRAPH = {tensors: 0, outputs: 2, operators: 3};
const SIGNATURE = {inputs: 0, outputs: 1, key: 2, graph: 4};
const NAMED = {name: 0, tensor: 1};
const TENSOR = {shape: 0, buffer: 2, signature: 7};
const BUFFER = {data: 0};
const OPERATOR = {code: 0, inputs: 1, outputs: 2};
const CODE = {old: 0, now: 3};

/** Tables, vectors and strings of a FlatBuffer. Places are offsets from its beginning. */
class FlatBuffer {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** @param {number} place @returns {number} what the offset at this place points to */
  follow(place) {
    return place + this.view.getUint32(place, true);
  }

  /** @param {number} table @param {number} field @returns {number} the place of a field, or 0 if it has its default */
  field(table, field) {
    const layout = table - this.view.getInt32(table, true);
    const entry = 4 + 2 * field;
    const offset = entry < this.view.getUint16(layout, true) ? this.view.getUint16(layout + entry, true) : 0;
    return offset && table + offset;
  }

  /** @param {number} table @param {number} field @returns {number} the place of a vector, a string or a table, or 0 */
  part(table, field) {
    const place = this.field(table, field);
    return place && this.follow(place);
  }

  /** @param {number} table @param {number} field @returns {number} */
  number(table, field) {
    const place = this.field(table, field);
    return place && this.view.getInt32(place, true);
  }

  /** @param {number} table @param {number} field @returns {number} */
  byte(table, field) {
    const place = this.field(table, field);
    return place && this.view.getInt8(place);
  }

  /** @param {number} vector @returns {number[]} the places of the elements, of 4 bytes each */
  places(vector) {
    const length = vector && this.view.getUint32(vector, true);
    return Array.from({length}, (_, i) => vector + 4 + 4 * i);
  }

  /** @param {number} vector @returns {number[]} */
  numbers(vector) {
    return this.places(vector).map((place) => this.view.getInt32(place, true));
  }

  /** @param {number} string @returns {string} */
  text(string) {
    const bytes = new Uint8Array(this.view.buffer, this.view.byteOffset + string + 4, this.view.getUint32(string, true));
    return new TextDecoder().decode(bytes);
  }

  /** Replace a vector by one that is not longer. @param {number} vector @param {number[]} numbers */
  write(vector, numbers) {
    this.view.setUint32(vector, numbers.length, true);
    numbers.forEach((number, i) => this.view.setInt32(vector + 4 + 4 * i, number, true));
  }

  /** Replace a vector of tables. @param {number} vector @param {number[]} tables */
  writeTables(vector, tables) {
    this.write(vector, tables.map((table, i) => table - (vector + 4 + 4 * i)));
  }
}

/**
 * Return a copy of a .tflite that has only one signature, with arrays of given sizes.
 *
 * @param {Uint8Array} file
 * @param {string} key the name of the signature
 * @param {Record<string, number[]>} shapes of its inputs, and of those of its outputs that are wanted
 * @returns {Uint8Array}
 */
export function specialised(file, key, shapes) {
  const copy = new Uint8Array(file);
  const flat = new FlatBuffer(copy);
  const model = flat.follow(0);
  const signatures = flat.part(model, MODEL.signatures);
  const tables = flat.places(signatures).map((place) => flat.follow(place));
  const signature = tables.find((table) => flat.text(flat.part(table, SIGNATURE.key)) === key);
  if (signature === undefined) throw new Error(`the model has no signature ${key}`);
  const graphs = flat.part(model, MODEL.graphs);
  const graph = flat.follow(flat.places(graphs)[flat.number(signature, SIGNATURE.graph)]);
  keepOutputs(flat, model, graph, signature, shapes);
  for (const {tensor, name} of [SIGNATURE.inputs, SIGNATURE.outputs].flatMap((side) => named(flat, signature, side))) {
    resize(flat, flat.follow(flat.places(flat.part(graph, GRAPH.tensors))[tensor]), name, shapes[name]);
  }
  flat.writeTables(signatures, [signature]);
  flat.writeTables(graphs, [graph]);
  const place = flat.field(signature, SIGNATURE.graph);
  if (place) flat.view.setUint32(place, 0, true);
  return copy;
}

/**
 * @param {FlatBuffer} flat @param {number} signature @param {number} side
 * @returns {{entry: number, name: string, tensor: number}[]} the inputs or the outputs of a signature
 */
function named(flat, signature, side) {
  return flat.places(flat.part(signature, side)).map((place) => {
    const entry = flat.follow(place);
    return {entry, name: flat.text(flat.part(entry, NAMED.name)), tensor: flat.number(entry, NAMED.tensor)};
  });
}

/**
 * Leave only the wanted outputs.
 *
 * @param {FlatBuffer} flat @param {number} model @param {number} graph @param {number} signature
 * @param {Record<string, number[]>} shapes
 */
function keepOutputs(flat, model, graph, signature, shapes) {
  const sources = reshaped(flat, model, graph);
  const kept = named(flat, signature, SIGNATURE.outputs).filter(({name}) => name in shapes);
  const order = flat.numbers(flat.part(graph, GRAPH.outputs)).filter((each) => kept.some(({tensor}) => tensor === each));
  flat.writeTables(flat.part(signature, SIGNATURE.outputs), kept.map(({entry}) => entry));
  flat.write(flat.part(graph, GRAPH.outputs), order.map((tensor) => sources.get(tensor) ?? tensor));
  for (const {entry, name, tensor} of kept) {
    const source = sources.get(tensor);
    if (source === undefined) continue;
    const place = flat.field(entry, NAMED.tensor);
    if (!place) throw new Error(`the output ${name} cannot be replaced`);
    flat.view.setInt32(place, source, true);
  }
}

/**
 * Return the tensors that LiteRT reshapes to a shape which it computes, each with what it is made of. As outputs they
 * are of no use: LiteRT has no place for an output whose size it learns when it runs. Both have the same numbers.
 *
 * @param {FlatBuffer} flat @param {number} model @param {number} graph
 * @returns {Map<number, number>}
 */
function reshaped(flat, model, graph) {
  const [codes, buffers, tensors, operators] = [
    flat.part(model, MODEL.codes), flat.part(model, MODEL.buffers),
    flat.part(graph, GRAPH.tensors), flat.part(graph, GRAPH.operators),
  ].map((vector) => flat.places(vector).map((place) => flat.follow(place)));
  const isReshape = codes.map((code) => flat.number(code, CODE.now) === RESHAPE || flat.byte(code, CODE.old) === RESHAPE);
  const found = new Map();
  for (const operator of operators) {
    if (!isReshape[flat.number(operator, OPERATOR.code)]) continue;
    const [source, shape] = flat.numbers(flat.part(operator, OPERATOR.inputs));
    const isComputed = !flat.part(buffers[flat.number(tensors[shape], TENSOR.buffer)], BUFFER.data);
    if (isComputed) found.set(flat.numbers(flat.part(operator, OPERATOR.outputs))[0], source);
  }
  return found;
}

/**
 * Set the shape of a tensor.
 *
 * @param {FlatBuffer} flat @param {number} tensor @param {string} name @param {number[] | undefined} shape
 */
function resize(flat, tensor, name, shape) {
  if (!shape) throw new Error(`the model has an unknown input ${name}`);
  for (const field of [TENSOR.shape, TENSOR.signature]) {
    const vector = flat.part(tensor, field);
    if (!vector) continue;
    if (flat.places(vector).length !== shape.length) throw new Error(`${name} has not ${shape.length} dimensions`);
    flat.write(vector, shape);
  }
}
