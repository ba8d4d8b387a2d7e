import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { crc32 } from 'node:zlib';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { isOutOfSpace } from '../../../shared/process/disk-errors.ts';
import type { boundExpansion } from '../expand/bound-expansion.ts';
import { TableError } from '../table/protocol.ts';

export interface Member {
  /** Its path in the archive. */
  name: string;
  entry: Entry;
}

export interface OpenZip {
  members: Member[];
  /** Writes a member to a new file. Throws TableError if it is not what the archive says, or too large. */
  extract(member: Member, path: string): Promise<void>;
  /** The bytes of a member. */
  read(member: Member): AsyncIterable<Buffer>;
  close(): void;
}

/** Limit of members. Directories count as well; an artifact is made of every file. */
const MAX_MEMBERS = 1_000;
const DEFLATE = 8;
/** The bits for the type in the attributes that Unix gives its files, and the type of a link. */
const [TYPE, LINK] = [0o170000, 0o120000];
const isIgnored = (name: string) =>
  name.startsWith('__MACOSX/') || /(^|\/)(\.DS_Store|Thumbs\.db)$/.test(name);

/** Reads the directory of an archive. Throws TableError for what cannot be extracted whole, safely and in the open. */
export async function openZip(
  path: string,
  bound: ReturnType<typeof boundExpansion>,
): Promise<OpenZip> {
  const zip = await openPromise(path, { strictFileNames: false, autoClose: false }).catch(refuse);
  const members = new Map<string, Member>();
  try {
    if (zip.entryCount > MAX_MEMBERS * 2) throw tooMany();
    for await (const entry of zip.eachEntry()) {
      const { fileName } = entry;
      if (fileName.endsWith('/') || isIgnored(fileName)) continue;
      const name = fileName
        .split('/')
        .filter(part => part !== '' && part !== '.')
        .join('/');
      checkEntry(entry, name);
      if (members.has(name)) throw inMember(name, 'there are two files of this name');
      members.set(name, { name, entry });
      if (members.size > MAX_MEMBERS) throw tooMany();
    }
  } catch (error) {
    refuse(error);
  }
  const read = (member: Member) => readMember(zip, member, bound);
  const extract = (member: Member, to: string) =>
    pipeline(read(member), createWriteStream(to, { flags: 'wx', mode: 0o600 }));
  return { members: [...members.values()], extract, read, close: () => zip.close() };
}

function checkEntry(entry: Entry, name: string): void {
  const isUnix = entry.versionMadeBy >> 8 === 3;
  if (entry.isEncrypted())
    throw inMember(name, 'it is encrypted', 'Send an archive without a password.');
  if (isUnix && ((entry.externalFileAttributes >>> 16) & TYPE) === LINK)
    throw inMember(name, 'it is a symbolic link', 'Send the file itself.');
  if (entry.compressionMethod !== 0 && entry.compressionMethod !== DEFLATE)
    throw inMember(
      name,
      `it is compressed by method ${entry.compressionMethod}, which is not read`,
      'Compress it by Deflate, as most programs do.',
    );
}

async function* readMember(
  zip: ZipFile,
  { name, entry }: Member,
  bound: ReturnType<typeof boundExpansion>,
): AsyncGenerator<Buffer> {
  let sum = 0;
  try {
    const bytes = (await zip.openReadStreamPromise(entry)) as AsyncIterable<Buffer>;
    for await (const piece of bound(bytes)) {
      sum = crc32(piece, sum);
      yield piece;
    }
  } catch (error) {
    if (error instanceof TableError || isOutOfSpace(error)) throw error;
    throw inMember(name, `it is damaged: ${messageOf(error)}`);
  }
  // Archives that are streamed have it after the bytes, and in the directory too.
  if (sum !== entry.crc32) throw inMember(name, 'it is damaged: its checksum is another');
}

/** A problem of a file in the archive. */
export function inMember(name: string, reason: string, hint?: string): TableError {
  return new TableError({ reason: `${JSON.stringify(name.slice(0, 200))}: ${reason}`, hint });
}

function tooMany(): TableError {
  return new TableError({
    reason: `there are more than ${MAX_MEMBERS.toLocaleString('en')} files in it`,
    hint: 'Split the archive.',
  });
}

const messageOf = (error: unknown) =>
  (error instanceof Error ? error.message : String(error)).slice(0, 200);

function refuse(error: unknown): never {
  if (error instanceof TableError || isOutOfSpace(error)) throw error;
  const [, name] = /^(?:absolute path|invalid relative path): (.*)$/s.exec(messageOf(error)) ?? [];
  if (name !== undefined)
    throw inMember(
      name,
      'its name is no path inside of the archive',
      'Pack it from the folder that it is in.',
    );
  throw new TableError({
    reason: `the ZIP archive is damaged: ${messageOf(error)}`,
    hint: 'Make the archive again, and send it again.',
  });
}
