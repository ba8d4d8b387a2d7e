import { randomInt } from 'node:crypto';
import { listProcesses } from '../../servers/processes.ts';
import { waitFor } from '../harness/wait-for.ts';

/** What a cancelled command, and all that it started, may take to be gone. */
export const GONE_MS = 5_000;

/** Seconds that no other process of this machine sleeps: it is found by them, whatever became of its environment. */
export const makeMark = () => `${randomInt(1_000, 9_999)}.${randomInt(100_000, 999_999)}`;

export const findMarked = (mark: string) =>
  listProcesses()
    .filter(({ command }) => command.includes(`sleep ${mark}`))
    .map(({ pid, command }) => `${pid} ${command}`);

export interface Tree {
  command: string;
  /** Until all of its children run. */
  awaitStart(): Promise<unknown>;
  /** Until none does; throws where that takes too long. */
  awaitEnd(): Promise<unknown>;
  left(): string[];
}

/** A command whose children do what they can to stay. */
export function makeTree(): Tree {
  const mark = makeMark();
  const sleep = `sleep ${mark}`;
  const lines = [
    sleep,
    `setsid ${sleep}`,
    `nohup ${sleep}`,
    `env -i PATH="$PATH" ${sleep}`,
    `env -i PATH="$PATH" setsid ${sleep}`,
    `setsid env -i PATH="$PATH" ${sleep}`,
    `(setsid sh -c '${sleep} & wait' & )`,
    `sh -c 'trap "" TERM HUP INT; ${sleep}'`,
    `setsid sh -c 'trap : TERM; ${sleep}; ${sleep}'`,
  ];
  const children = lines.map(line => `${line} >/dev/null 2>&1 &`).join('\n');
  const count = () => findMarked(mark).filter(line => /^\d+ sleep /.test(line)).length;
  return {
    command: `${children}\necho begun\ntrap : TERM\n${sleep}; ${sleep}`,
    awaitStart: () =>
      waitFor(() => count() >= lines.length + 1, { what: 'the tree', timeoutMs: 20_000 }),
    awaitEnd: () =>
      waitFor(() => findMarked(mark).length === 0, {
        what: `the end of the tree: ${findMarked(mark).join(', ')}`,
        timeoutMs: GONE_MS,
      }).catch((cause: unknown) => {
        throw new Error(`Of the tree is left:\n${findMarked(mark).join('\n')}`, { cause });
      }),
    left: () => findMarked(mark),
  };
}
