import { accountOf, type Cursors, type FollowedRow } from './followed-jobs.ts';

type Row = Pick<FollowedRow, 'id' | 'username' | 'owner'>;

interface PollPlan<Job extends Row> {
  /** The jobs of each account that no earlier poll is still asking, in the order of turns. */
  accounts: [name: string, rows: Job[]][];
  /** The account whose turn it is to ask the batch system. */
  asking: string;
}

/** What a worker remembers of a host from one poll to the next. */
export class HostMemory {
  /** The account that was asked last. Workers with other accounts take turns with this one. */
  turn: string | undefined;
  cursors: Cursors = {};
  /** The polls in a row that found an account's home unreachable, by account. */
  readonly unreachable = new Map<string, number>();
  /** Accounts that an earlier poll is still asking. */
  readonly underWay = new Set<string>();

  /** Plans the poll of these jobs. `isFull`: there may be more jobs than one poll holds. */
  plan<Job extends Row>(
    rows: readonly Job[],
    { turn, isFull }: { turn: string; isFull: boolean },
  ): PollPlan<Job> {
    const accounts = groupByAccount(rows);
    for (const name of this.unreachable.keys())
      if (!accounts.has(name)) this.unreachable.delete(name);
    const idle = [...accounts]
      .filter(([name]) => !this.underWay.has(name))
      .sort(([one], [other]) => (one < other ? -1 : 1));
    const [asking = turn, asked] = idle.find(([name]) => name > turn) ?? idle[0] ?? [];
    this.turn = asking;
    if (!isFull) this.cursors = {};
    // Only for the account that asks: the batch system must be asked for each of its jobs.
    else if (asked) this.cursors[asking] = asked.at(-1)?.id ?? '';
    return { accounts: idle, asking };
  }
}

function groupByAccount<Job extends Row>(rows: readonly Job[]): Map<string, Job[]> {
  const accounts = new Map<string, Job[]>();
  for (const row of rows) {
    const own = accounts.get(accountOf(row));
    if (own) own.push(row);
    else accounts.set(accountOf(row), [row]);
  }
  return accounts;
}
