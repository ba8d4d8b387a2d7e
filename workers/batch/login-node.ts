import { readFileSync } from 'node:fs';
import { WindlassError } from '../../shared/errors/errors.ts';
import type { OutputOffsets } from '../../shared/jobs/output.ts';
import { type BatchRequest, type EngineName, folderOf } from '../../shared/jobs/payloads/batch.ts';
import type { RemoteExec } from '../host-agent/exec-channel.ts';
import { quoteFolder, quoteWord } from '../host-agent/shell-quote.ts';
import { askHost } from '../ssh/ask-host.ts';
import { harmless, readable } from '../ssh/host-words.ts';
import { Statuses, tokenOf } from './engine.ts';
import { ENGINE } from './engines.ts';
import { jobFile, requestFile, variablesFile } from './submission-files.ts';
import { parseSizes, parseStates, type SubmissionState } from './submission-state.ts';

const FUNCTIONS = readFileSync(new URL('sh/login-node.sh', import.meta.url), 'utf8');
/** Limit of bytes of each stream in one answer. */
const MAX_ANSWER_BYTES = 4 << 20;
/** Limit of seconds for one query of a batch system. */
const QUERY_SECONDS = 120;

/** Characters of what a submit command says, which an error quotes. */
const MAX_COMPLAINED = 2_000;

/** Why a submission could not be prepared. */
export type PrepareFailure = 'no_engine' | 'no_cwd' | 'cannot_write';

/** Runs the functions of sh/login-node.sh on a session's host. Every call can be repeated at any time. */
export class LoginNode {
  readonly #remote: RemoteExec;
  readonly #signal: AbortSignal;

  constructor(remote: RemoteExec, signal: AbortSignal) {
    this.#remote = remote;
    this.#signal = signal;
  }

  /** The engines that the host has, and the account's home; null where that is no absolute path for people to read. */
  async introduce(): Promise<{ engines: EngineName[]; home: string | null }> {
    const names = Object.keys(ENGINE) as EngineName[];
    const lines = names.map(
      name => `if command -v ${ENGINE[name].program} >/dev/null; then echo has ${name}; fi`,
    );
    const answer = await this.#ask([...lines, `printf 'home %s\\n' "$HOME"`].join('\n'));
    const [, home = ''] = /^home (\/.*)$/m.exec(answer) ?? [];
    const engines = names.filter(name => new RegExp(`^has ${name}$`, 'm').test(answer));
    // A part of a path is another path.
    return { engines, home: home !== '' && harmless(home) === home ? home : null };
  }

  /**
   * Makes the directory of a submission that nobody has used before, and returns its name: that of the job's present submission
   * if there is one, whose record the database has lost.
   */
  async prepare(
    name: string,
    request: BatchRequest,
    engine: EngineName,
  ): Promise<{ directory: string } | { failure: PrepareFailure }> {
    const { script } = request;
    const files = [
      ['job', jobFile(request)],
      ['request', requestFile(request)],
      ['variables', variablesFile(request)],
      ...(script === undefined ? [] : [['script', script]]),
    ] as const;
    const answer = await this.#ask(
      [
        `begin_directory ${name} ${quoteFolder(folderOf(request) ?? '')} ${ENGINE[engine].program}`,
        ...files.flatMap(([file, text]) => [
          `printf %s ${quoteWord(text)} >"$windlass_dir/${file}"`,
          `has_bytes ${file} ${Buffer.byteLength(text)}`,
        ]),
        'end_directory',
      ].join('\n'),
    );
    if (/^prepared$/m.test(answer)) return { directory: name };
    const [, submitted] = /^submitted ([\w-]+)$/m.exec(answer) ?? [];
    if (submitted !== undefined) return { directory: submitted };
    const why = /^failed (no_engine|no_cwd)$/m.exec(answer)?.[1];
    return { failure: (why as PrepareFailure | undefined) ?? 'cannot_write' };
  }

  /** Calls the submit command unless somebody has, once for this directory; then looks. */
  async submit(name: string, request: BatchRequest, engine: EngineName): Promise<SubmissionState> {
    const { command, script, ...rest } = request;
    const submitted = ENGINE[engine].submit(tokenOf(name), rest);
    return this.#look(
      name,
      `submit_job() {\n${submitted}\n}\nsubmit ${name} ${quoteFolder(folderOf(request) ?? '')}`,
    );
  }

  look(name: string): Promise<SubmissionState> {
    return this.#look(name, '');
  }

  /** Takes away the job's right to begin. */
  revoke(name: string): Promise<SubmissionState> {
    return this.#look(name, `revoke ${name}`);
  }

  /** Takes away the rights to be submitted and to begin. */
  withdraw(name: string): Promise<SubmissionState> {
    return this.#look(name, `withdraw ${name}`);
  }

  /** What the submit command printed on both streams. */
  async readAnswer(name: string): Promise<{ printed: string; complained: string }> {
    const answer = await this.#ask(`read_answer ${name}`);
    const lines = (prefix: string) =>
      [...answer.matchAll(new RegExp(`^${prefix} (.*)$`, 'gm'))].map(found => found[1]).join('\n');
    const complained = readable(lines('complained').slice(0, MAX_COMPLAINED));
    return { printed: lines('printed'), complained };
  }

  /** Has the batch system end these jobs of the account, within `seconds`. */
  async cancel(engine: EngineName, ids: string[], seconds: number): Promise<void> {
    await this.#ask(`within ${seconds} /bin/sh -c ${quoteWord(ENGINE[engine].cancel(ids))}`);
  }

  /** The next bytes of both streams from these offsets on; `hasMore`: one answer cannot hold all. */
  async readOutput(
    name: string,
    from: OutputOffsets,
  ): Promise<{ stdout: Buffer; stderr: Buffer; hasMore: boolean }> {
    const program = `read_output ${name} ${from.stdout} ${from.stderr} ${MAX_ANSWER_BYTES}`;
    const answer = await askHost(this.#remote, FUNCTIONS + program, this.#signal);
    const line = answer.subarray(0, answer.indexOf('\n')).toString();
    const [, out = '0', err = '0'] = /^bytes (\d+) (\d+)$/.exec(line) ?? [];
    const bytes = answer.subarray(line.length + 1);
    // Fewer came where a file became shorter meanwhile.
    if (bytes.length !== Number(out) + Number(err))
      return { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), hasMore: false };
    return {
      stdout: bytes.subarray(0, Number(out)),
      stderr: bytes.subarray(Number(out)),
      hasMore: Number(out) === MAX_ANSWER_BYTES || Number(err) === MAX_ANSWER_BYTES,
    };
  }

  /** The state and output sizes of many submissions; if it is `asked`, also their batch system's word. */
  async poll(names: string[], engine: EngineName, asked?: Asked): Promise<Poll> {
    const query = asked && ENGINE[engine].status(asked.ids, asked.tokens);
    const answer = await this.#ask(
      [
        ...(asked?.ended.map(name => `withdraw ${name}`) ?? []),
        `for name in ${names.join(' ')}; do look "$name"; done`,
        `measure ${names.join(' ')}`,
        'echo statuses',
        ...(query ? [askWithin(query.command)] : []),
      ].join('\n'),
    );
    const at = answer.indexOf('statuses\n');
    const files = answer.slice(0, at);
    const said = answer.slice(at + 'statuses\n'.length);
    const statuses = query?.parse(said);
    return {
      submissions: parseStates(files),
      sizes: parseSizes(files),
      statuses: statuses && new Statuses(statuses),
      ...(query && !statuses ? { unanswered: firstLine(said) } : {}),
    };
  }

  /**
   * Removes all submissions of these jobs. Returns the jobs that left nothing; undefined if the home is unreachable, as all
   * may still be there.
   */
  async remove(jobs: Removal[]): Promise<string[] | undefined> {
    const answer = await this.#ask(
      [...jobs.map(({ job, kept = '' }) => `remove ${job} ${kept}`), 'say_home'].join('\n'),
    );
    if (!/^home$/m.test(answer)) return undefined;
    return [...answer.matchAll(/^removed (\S+)$/gm)].map(([, job = '']) => job);
  }

  async #look(name: string, before: string): Promise<SubmissionState> {
    const submission = parseStates(await this.#ask(`${before}\nrefresh ${name}\nlook ${name}`)).get(
      name,
    );
    // A home on a network drive may be unreachable for a moment; the job goes on.
    if (!submission)
      throw new WindlassError('remote_connection_failed', {
        detail: `The host says nothing of the batch job ${name}: ~/.windlass/batch is not there.`,
      });
    return submission;
  }

  async #ask(program: string): Promise<string> {
    return (await askHost(this.#remote, FUNCTIONS + program, this.#signal)).toString('utf8');
  }
}

export interface Poll {
  submissions: Map<string, SubmissionState>;
  sizes: Map<string, OutputOffsets>;
  /** Undefined: not asked for, or the batch system did not answer. */
  statuses: Statuses | undefined;
  /** What it said where it did not answer. */
  unanswered?: string;
}

const firstLine = (text: string) =>
  harmless(text.slice(0, 2_000)).trim().split('\n')[0]?.slice(0, 300) || 'it says nothing';

/** By standard input, because no argument may have more than 128 KiB. `timeout` tells by 124 that it has ended the query. */
const askWithin = (command: string) => `within ${QUERY_SECONDS} /bin/sh 2>&1 <<'END_OF_QUERY'
{
${command}
} </dev/null
END_OF_QUERY
[ $? -ne 124 ] || echo 'no answer within ${QUERY_SECONDS} s'`;

/** What a batch system is asked about: jobs of these ids, and of these tokens. */
export interface Asked {
  ids: string[];
  tokens: string[];
  /** Submissions of jobs that have ended here: those that have not begun never do. */
  ended: string[];
}

/** An ended job. `kept`: a submission that stays. */
export interface Removal {
  job: string;
  kept?: string | undefined;
}
