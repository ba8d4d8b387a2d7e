import { createHash, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { conflict, WindlassError } from '../../shared/errors/errors.ts';
import { abortable, abortableOpen } from '../../shared/process/abort.ts';
import { limitTime } from '../../shared/process/limit-time.ts';
import type { ExecChannel, RemoteExec } from '../host-agent/exec-channel.ts';
import { SCRIPT_COMMAND } from '../host-agent/no-functions.ts';
import { readWords, whyNothingRan } from '../ssh/nothing-ran.ts';
import { isAppended } from './appended-file.ts';
import { ByteReader } from './byte-reader.ts';
import {
  compareStates,
  type FileRange,
  type FileState,
  MAX_UNSIZED_BYTES,
  readState,
  scriptToRead,
  tagOf,
} from './file-script.ts';
import {
  belied,
  connectionLost,
  neverEnds,
  toObstacle,
  tooSilent,
  toReadError,
  unsized,
} from './read-errors.ts';

interface ReadFileOptions extends FileRange {
  signal?: AbortSignal;
  /** How long the host may send nothing. Default 240,000. */
  silenceMs?: number;
}

interface RemoteFile {
  /** The whole file's bytes when it was opened; what is appended later is not read. */
  size: number;
  /** Identifies the file's state; changes with each change. Undefined if the host's programs do not tell. */
  tag: string | undefined;
  /** The state itself, as the host's programs tell it. */
  state: string | undefined;
  /**
   * The requested bytes; destroy to stop. Fails with `remote_connection_failed`, or before the last byte with
   * `conflict` if the bytes are not all of one state.
   */
  bytes: Readable;
}

/** The most that start-up files may print before the stream. */
const MAX_PRINTED_BYTES = 1 << 20;
/**
 * How long the script may take to end after its last byte, for one call of stat, or its bytes to come after its end.
 */
const END_MS = 20_000;
/** Clients wait a little longer for an answer to begin, but not 300 s: a disk that hangs is told of, not asked again. */
const SILENCE_MS = 240_000;
/** ssh2 closes the channels of a lost connection at once. */
const LOST_MS = 1_000;
/** Read before the size is told, which a short file may belie. */
const AHEAD_BYTES = 65_536;

/**
 * Streams a file of the session's host over an exec channel, without the agent. Errors, which name the path:
 * `not_found`, `forbidden`, `invalid_input` (no regular file, or no size), `conflict` (changed, or shorter than its
 * size), `time_limit` (nothing comes for long, as where a disk hangs), `shell_unusable`, `remote_connection_failed`.
 */
export async function openRemoteFile(
  session: RemoteExec,
  options: ReadFileOptions,
): Promise<RemoteFile> {
  const { path, signal, silenceMs = SILENCE_MS } = options;
  const mark = randomBytes(16).toString('hex');
  const opening = session.exec(SCRIPT_COMMAND, signal);
  const channel = signal
    ? await abortableOpen(opening, signal, late => late.destroy())
    : await opening;
  const ending = awaitEnding(channel, mark);
  const words = readWords(channel);
  channel.stdin.on('error', () => {});
  channel.stdin.end(scriptToRead(mark, options));
  const reader = new ByteReader(channel.stdout, signal, {
    ms: silenceMs,
    toError: () => tooSilent(path, silenceMs),
  });
  try {
    const found = await readHeader(reader, mark).catch(async (error: unknown) => {
      const isEnd = !(error instanceof WindlassError) && !signal?.aborted;
      throw (isEnd && (await whyNothingRan(session, channel, words))) || error;
    });
    // Numbers of fifteen digits are exact, and larger than any file.
    if (!/^\d{1,15}$/.test(found)) throw toReadError(path, toObstacle(found));
    const { bytes: state, isWhole } = await reader.readUntil(Buffer.from('\n'), 4_096);
    if (!isWhole) throw new Error('its stat prints too much');
    const before = readState(state.toString('latin1'));
    const { closed } = channel;
    const release = () => {
      reader.close();
      channel.destroy();
    };
    const said = Number(found);
    const asked = { host: session, path, offset: options.offset ?? 0, release };
    const opened = { ...asked, mark, said, before, reader, ending, closed, signal };
    const { size, pieces } = await readSized(opened, options);
    const bytes = Readable.from(pieces, { objectMode: false });
    // Not in the generator's `finally`, which does not run if the stream is destroyed before the first read.
    bytes.once('close', release);
    return { size, tag: tagOf(before), state: before?.text, bytes };
  } catch (error) {
    reader.close();
    channel.destroy();
    signal?.throwIfAborted();
    throw error instanceof WindlassError ? error : connectionLost(path, error);
  }
}

interface OpenedFile {
  host: RemoteExec;
  path: string;
  offset: number;
  /** Closes the channel. */
  release(): void;
  /** Ends the bytes of a file without a size. */
  mark: string;
  /** Its size, as the host tells it. */
  said: number;
  /** Its state when it was opened, where the host tells it. */
  before: FileState | undefined;
  reader: ByteReader;
  ending: Promise<Ending>;
  closed: ExecChannel['closed'];
  signal: AbortSignal | undefined;
}

interface Ending {
  /** The script's status; null if the connection was lost before it. */
  code: number | null;
  /** The file's state after the last byte, where the host tells it. */
  after: FileState | undefined;
}

/** The script's own last word on how it ended, or else the channel's. */
function awaitEnding({ stderr, closed }: ExecChannel, mark: string): Promise<Ending> {
  let printed = '';
  stderr.on('error', () => {});
  return new Promise(resolve => {
    stderr.on('data', (bytes: Buffer) => {
      printed = `${printed}${bytes.toString('latin1')}`.slice(-4_096);
      const said = new RegExp(`\\n${mark} (\\d+) ?(.*)\\n`).exec(printed);
      if (said) resolve({ code: Number(said[1]), after: readState(said[2] ?? '') });
    });
    void closed.then(({ code }) => resolve({ code, after: undefined }));
  });
}

/**
 * The size and the requested bytes. A file may be shorter than its host says, so a short one is read before its size is
 * told.
 */
async function readSized(
  file: OpenedFile,
  { offset = 0, length = Infinity }: ReadFileOptions,
): Promise<{ size: number; pieces: AsyncGenerator<Buffer> }> {
  const { said } = file;
  if (said === 0) return readUnsized(file, { offset, length });
  const asked = Math.max(0, Math.min(length, said - offset));
  const ahead = readAhead(file.reader, Math.min(asked, AHEAD_BYTES));
  // Its end may not come, either.
  const ended = file.ending.then(() => soon(file, ahead));
  const { bytes, isEnd } = await Promise.race([ahead, ended]);
  if (!isEnd) return { size: said, pieces: readWhole(file, bytes, asked) };
  await assertWhole(file);
  // The offset is beyond the file's unknown end.
  if (bytes.length === 0 && offset > 0) throw belied(file);
  return { size: offset + bytes.length, pieces: readWhole(file, bytes, bytes.length) };
}

/** For a file of size 0, such as one that a kernel makes up: all is read before its size is told. */
async function readUnsized(
  file: OpenedFile,
  { offset, length }: { offset: number; length: number },
): Promise<{ size: number; pieces: AsyncGenerator<Buffer> }> {
  const mark = Buffer.from(`\n${file.mark}\n`);
  const { bytes, isWhole } = await file.reader.readUntil(mark, MAX_UNSIZED_BYTES);
  if (!isWhole) throw unsized(file.path);
  await assertUnchanged(file);
  const range = bytes.subarray(offset, offset + length);
  return { size: bytes.length, pieces: readWhole(file, range, range.length) };
}

/** At least so many bytes, or all that come. */
async function readAhead(
  reader: ByteReader,
  limit: number,
): Promise<{ bytes: Buffer; isEnd: boolean }> {
  const read: Buffer[] = [];
  let length = 0;
  while (length < limit) {
    const bytes = await reader.read();
    if (!bytes) return { bytes: Buffer.concat(read), isEnd: true };
    read.push(bytes);
    length += bytes.length;
  }
  return { bytes: Buffer.concat(read), isEnd: false };
}

/** Exactly so many bytes, of which `ahead` was read. The last one comes once all are known to be of one state. */
async function* readWhole(
  file: OpenedFile,
  ahead: Buffer,
  length: number,
): AsyncGenerator<Buffer, void, undefined> {
  const { path, reader } = file;
  const hash = createHash('sha256');
  let left = length;
  try {
    for (let bytes: Buffer | undefined = ahead; left > 0; bytes = await reader.read()) {
      if (!bytes) {
        await assertWhole(file);
        throw belied(file);
      }
      const wanted = bytes.subarray(0, left);
      hash.update(wanted);
      if (bytes.length >= left) {
        const isLonger = bytes.length > left || (await isFollowed(file));
        if (isLonger || (await assertUnchanged(file)) === 'longer')
          await assertAppended(file, { length, digest: hash.digest('hex') });
      }
      left -= wanted.length;
      if (wanted.length > 0) yield wanted;
      // What was left running may hold the stream open: it is not read again.
      if (left === 0) return;
    }
  } catch (error) {
    const isAborted = error instanceof Error && error.name === 'AbortError';
    throw error instanceof WindlassError || isAborted ? error : connectionLost(path, error);
  }
}

/** Whether more bytes follow. The stream may not end: processes left by start-up files may hold it open. */
async function isFollowed(file: OpenedFile): Promise<boolean> {
  const next = await soon(file, Promise.race([file.reader.read(), file.ending]));
  return Buffer.isBuffer(next);
}

/**
 * Waits for the script's end: only its status tells the end of the file from a lost connection. Returns `longer` where
 * the file may have been appended to.
 */
async function assertUnchanged(file: OpenedFile): Promise<'same' | 'longer'> {
  const { path, before } = file;
  const { code, after } = await soon(file, file.ending);
  if (code === null) throw connectionLost(path);
  if (code !== 0) throw toReadError(path, 'broken');
  const state = compareStates(before, after);
  if (state === 'changed') throw changed(path);
  return state;
}

/** The channel is released first: a host may allow a single one. */
async function assertAppended(
  { host, path, offset, before, release, signal = PATIENT }: OpenedFile,
  read: { length: number; digest: string },
): Promise<void> {
  release();
  if (!(await isAppended(host, { path, offset, before, ...read }, signal))) throw changed(path);
}

const changed = (path: string) =>
  conflict(`${path} was changed while it was read.`, 'Read it again when nothing writes to it.');

/** For a stream that ended too early: bytes may have been lost although the status came. */
async function assertWhole(file: OpenedFile): Promise<void> {
  await assertUnchanged(file);
  const stillOpen = delay(LOST_MS, undefined, { ref: false });
  const closed = await Promise.race([file.closed, stillOpen]);
  if (closed?.code === null) throw connectionLost(file.path);
}

/** What comes soon after the last byte. */
async function soon<T>({ path, signal = PATIENT }: OpenedFile, work: Promise<T>): Promise<T> {
  return limitTime(signal, END_MS, limited => abortable(work, limited)).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error instanceof Error && error.name === 'TimeoutError' ? neverEnds(path, END_MS) : error;
  });
}

const PATIENT = new AbortController().signal;

async function readHeader(reader: ByteReader, mark: string): Promise<string> {
  const { isWhole } = await reader.readUntil(Buffer.from(`\n${mark} `), MAX_PRINTED_BYTES);
  if (!isWhole) throw new Error('the start-up files print too much');
  return (await reader.readUntil(Buffer.from('\n'), 64)).bytes.toString('latin1');
}
