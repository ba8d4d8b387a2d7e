import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { Metadata, Module } from 'h5wasm';
import { TableError } from '../table/protocol.ts';
import { Datatypes } from './datatypes.ts';

/** An open HDF5 file, whose datasets are named by their paths. */
export interface Hdf5File {
  names(group: string): string[];
  /** Undefined for links that lead elsewhere, and for what is neither. */
  kindOf(path: string): 'group' | 'dataset' | undefined;
  describe(path: string): Metadata;
  /** One address for all names of a group. */
  addressOf(path: string): string;
  /**
   * For each member of a record, or else for the values: whether all numbers use all bits of their bytes, as integers or by
   * IEEE 754. Others would be misread, and so would members beyond the end of the list.
   */
  plainMembers(path: string): boolean[];
  /** Whether the values of a dataset lie in files beside this one. */
  hasOtherFiles(path: string): boolean;
  /** The filters of a dataset, by name or number, that HDF5 does not include, such as lzf. */
  foreignFilters(path: string): string[];
  /** A block of values, little-endian; for each place of `textsAt` the texts of all values there. */
  read(path: string, block: Block): { bytes: Buffer; texts: Map<number, Buffer[]> };
  /** A text attribute of a dataset. */
  attribute(path: string, name: string): string | undefined;
  close(): void;
}

export interface Block {
  metadata: Metadata;
  /** The first index and the count of each dimension; both are empty for a single value. */
  from: number[];
  count: number[];
  /** Where within a value the addresses of texts of variable length are. */
  textsAt?: number[];
}

type H5Module = typeof Module;

const PATH = '/file.h5';
const POINTER = 4;
/** HDF5's class of lists of variable length. */
const VARIABLE = 9;

/**
 * Opens a file in a virtual file system of its own, so that its links and external storage lead to no other file. It is
 * read on demand. h5wasm's own readers return stale memory when HDF5 fails; these check.
 */
export async function openHdf5(path: string): Promise<Hdf5File> {
  const { ready } = await import('h5wasm');
  const module = await ready;
  const fd = openSync(path, 'r');
  mount(module, fd);
  // Otherwise HDF5 reports only on standard error what it could not list.
  module.activate_throwing_error_handler();
  const file = attempt(() => module.open(PATH, module.H5F_ACC_RDONLY, false, -1, -1));
  if (file < 0n) throw damaged('it cannot be opened');
  const datatypes = new Datatypes(fd);
  /** A reference to an object is the address of its header. */
  const referTo = (one: string) => Buffer.from(module.create_object_reference(file, one));
  const read: Hdf5File['read'] = (dataset, { metadata, from, count, textsAt = [] }) =>
    attempt(() => {
      const length = count.reduce((product, one) => product * one, 1);
      const whole = count.length === 0;
      const big = (numbers: number[]) => numbers.map(BigInt);
      const ones = count.map(() => 1n);
      return withMemory(module, length * metadata.size, pointer => {
        const status = whole
          ? module.get_dataset_data(file, dataset, null, null, null, BigInt(pointer))
          : module.get_dataset_data(file, dataset, big(count), big(from), ones, BigInt(pointer));
        if (status < 0) throw damaged(`the values of ${dataset} cannot be read`);
        const bytes = copy(module, pointer, length * metadata.size);
        const texts = new Map(
          textsAt.map(at => [at, readTexts(module, bytes, { at, step: metadata.size })]),
        );
        if (!hasVariable(metadata)) return { bytes, texts };
        if (whole) module.reclaim_vlen_memory(file, dataset, '', BigInt(pointer));
        else module.reclaim_vlen_memory_count(file, dataset, '', BigInt(pointer), big(count));
        return { bytes, texts };
      });
    });
  return {
    names: group => attempt(() => module.get_names(file, group, false)),
    kindOf: one =>
      attempt(() => {
        if (module.get_symbolic_link(file, one) !== null) return undefined;
        if (module.get_external_link(file, one).filename !== undefined) return undefined;
        const type = module.get_type(file, one);
        if (type === module.H5G_GROUP) return 'group';
        if (type === module.H5G_DATASET) return 'dataset';
        if (type !== module.H5G_TYPE) throw damaged(`${one} cannot be read`);
        return undefined;
      }),
    describe: one => attempt(() => module.get_dataset_metadata(file, one)),
    addressOf: one => attempt(() => referTo(one).toString('hex')),
    plainMembers: one => attempt(() => datatypes.plainMembers(referTo(one))),
    hasOtherFiles: one => attempt(() => datatypes.hasOtherFiles(referTo(one))),
    foreignFilters: one =>
      attempt(() =>
        module
          .get_dataset_filters(file, one)
          .filter(({ id }) => id >= module.H5Z_FILTER_RESERVED)
          .map(({ id, name }) => name || `number ${id}`),
      ),
    read,
    attribute: (one, name) => attempt(() => readAttribute(module, file, [one, name])),
    close: () => {
      module.close_file(file);
      module.FS.unlink(PATH);
      closeSync(fd);
    },
  };
}

/** The file as one of Emscripten's, read from the descriptor. */
function mount(module: H5Module, fd: number): void {
  const { size } = fstatSync(fd);
  const { FS } = module as unknown as { FS: EmscriptenFs };
  // The file must not reach this process's standard input.
  if (FS.analyzePath('/dev/stdin').exists) FS.unlink('/dev/stdin');
  FS.writeFile(PATH, new Uint8Array(0));
  const { node } = FS.lookupPath(PATH);
  const { getattr } = node.node_ops;
  node.node_ops = { ...node.node_ops, getattr: of => ({ ...getattr(of), size }) };
  node.stream_ops = {
    ...node.stream_ops,
    llseek: (stream, offset, whence) =>
      offset + (whence === 1 ? stream.position : whence === 2 ? size : 0),
    read: (_stream, buffer, offset, length, position) =>
      position >= size
        ? 0
        : readSync(fd, buffer, offset, Math.min(length, size - position), position),
  };
}

interface EmscriptenNode {
  node_ops: { getattr(node: EmscriptenNode): { size: number } };
  stream_ops: {
    llseek(stream: { position: number }, offset: number, whence: number): number;
    read(
      stream: unknown,
      buffer: Uint8Array,
      offset: number,
      length: number,
      position: number,
    ): number;
  };
}

interface EmscriptenFs {
  writeFile(path: string, bytes: Uint8Array): void;
  lookupPath(path: string): { node: EmscriptenNode };
  analyzePath(path: string): { exists: boolean };
  unlink(path: string): void;
}

function withMemory<T>(module: H5Module, bytes: number, use: (pointer: number) => T): T {
  // A failed read must not show what was there before.
  const pointer = module._malloc(Math.max(1, bytes));
  if (pointer === 0) throw new Error('could not allocate memory for HDF5');
  try {
    module.HEAPU8.fill(0, pointer, pointer + bytes);
    return use(pointer);
  } finally {
    module._free(pointer);
  }
}

const copy = (module: H5Module, pointer: number, length: number) =>
  Buffer.from(module.HEAPU8.slice(pointer, pointer + length).buffer);

/** Whether reading such values takes memory beside their bytes, which has to be given back. */
function hasVariable({ vlen, type, compound_type, array_type }: Metadata): boolean {
  if (vlen || type === VARIABLE) return true;
  return array_type ? hasVariable(array_type) : (compound_type?.members ?? []).some(hasVariable);
}

/** Reads texts of variable length at their addresses; a text without an address is empty. */
function readTexts(
  module: H5Module,
  values: Buffer,
  { at: first, step }: { at: number; step: number },
): Buffer[] {
  const texts: Buffer[] = [];
  for (let at = first; at < values.length; at += step) {
    const from = values.readUInt32LE(at);
    const end = from === 0 ? 0 : module.HEAPU8.indexOf(0, from);
    texts.push(copy(module, from, Math.max(0, end - from)));
  }
  return texts;
}

function readAttribute(
  module: H5Module,
  file: bigint,
  [path, name]: [path: string, name: string],
): string | undefined {
  if (!module.get_attribute_names(file, path).includes(name)) return undefined;
  const { type, shape, vlen, size, total_size } = module.get_attribute_metadata(file, path, name);
  const isText = type === module.H5T_class_t.H5T_STRING.value;
  if (!isText || !shape || total_size !== 1 || size > 1_000) return undefined;
  return withMemory(module, size, pointer => {
    const status = module.get_attribute_data(file, path, name, BigInt(pointer));
    if (status < 0) throw damaged(`the attribute ${name} of ${path} cannot be read`);
    const bytes = copy(module, pointer, size);
    const [text = bytes] = vlen ? readTexts(module, bytes, { at: 0, step: POINTER }) : [];
    if (vlen) module.reclaim_vlen_memory(file, path, name, BigInt(pointer));
    const [before = ''] = text.toString('utf8').split('\0', 1);
    return before.trim();
  });
}

/** Whatever the library throws is an error of the file. */
function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TableError) throw error;
    const message = error instanceof Error ? error.message : String(error);
    if (/allocat|enlarge memory|OOM/i.test(message)) throw new Error(`Out of Memory: ${message}`);
    // The message holds the stack of HDF5's errors, the last of which is the cause.
    const [, why = message] = [...message.matchAll(/\(\): (.*)/g)].at(-1) ?? [];
    throw damaged(why.slice(0, 200));
  }
}

const damaged = (why: string) =>
  new TableError({
    reason: `the HDF5 file is damaged: ${why}`,
    hint: 'Write the file again, and send it again.',
  });
