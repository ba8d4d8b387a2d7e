import type { Rewrite } from './simulated-database.ts';

/** A fault in one of the product's statements. */
export interface PlantedFault {
  name: string;
  /** The seed of a schedule that finds it, where one is known. */
  seed?: number;
  /** The statement. */
  where: RegExp;
  /** What its text loses, and what stands there instead. */
  change: [RegExp, string][];
}

const CLAIM = /^with "given".* "lease" as/;
const END = /^with "given" as \([^)]*\) update "jobs" set "state"/;
const OF_GIVEN = String.raw`\(\(select value from given\) -> "jobs"\."id"\)`;
const HAS_TOKEN = new RegExp(`"jobs"\\."lease_token" = ${OF_GIVEN} ->> 'token'`);
const ABANDON = /^update "jobs" set "state" = case when \("jobs"\."consecutive_losses"/;
const STORE = /^update "jobs" set .*"stdout_bytes" = \$2/;
const RECLAIM = /^with "seen".* "expired" as/;
const LOOK_AT_LEASES = /as version\s+from "jobs"/;
const IS_AS_SEEN = /version = "leases"\.xmin::text/;

export const PLANTED_FAULTS: PlantedFault[] = [
  {
    name: 'a claim takes what another worker has',
    seed: 7,
    where: CLAIM,
    change: [[/num_nonnulls\(finished, lease_token\) = 0/g, 'num_nonnulls(finished) = 0']],
  },
  {
    name: 'a claim takes any epoch',
    seed: 19,
    where: CLAIM,
    change: [[new RegExp(`"jobs"\\."epoch" = \\(${OF_GIVEN} ->> 'epoch'\\)::int`), 'true']],
  },
  {
    name: 'output is stored without a look at the token',
    where: STORE,
    change: [[/"jobs"\."lease_token" = \$5/, '$5::text is not null']],
  },
  {
    name: 'offsets of output are not compared',
    where: STORE,
    change: [
      [
        /"jobs"\."stdout_bytes" = \$6 and "jobs"\."stderr_bytes" = \$7/,
        '$6::bigint + $7::bigint >= 0',
      ],
    ],
  },
  {
    name: 'a job is ended without a look at the token',
    seed: 135,
    where: END,
    change: [[HAS_TOKEN, 'true']],
  },
  {
    name: 'an end is not final',
    seed: 28,
    where: END,
    change: [[new RegExp(`${HAS_TOKEN.source} and num_nonnulls\\(finished\\) = 0`), 'true']],
  },
  {
    name: 'a promotion ignores a cancel',
    seed: 40,
    where: END,
    change: [[/"jobs"\."cancel_requested" is null or .*?::boolean/, 'true']],
  },
  {
    name: 'a cancel ends a job that a worker has',
    seed: 3,
    where: /"cancel_requested" = coalesce/,
    change: [
      [
        /"jobs"\."state" = 'queued' and "jobs"\."lease_token" is null and not \(/g,
        `"jobs"."state" <> 'ended' and not (false and `,
      ],
    ],
  },
  {
    name: 'a claim is abandoned without a look at the token',
    seed: 113,
    where: ABANDON,
    change: [[/"jobs"\."lease_token" = (\$\d+)/, '$1::text is not null']],
  },
  {
    name: 'a command starts before its promise is kept',
    seed: 2,
    where: /^update "jobs" set "run_at" = \$1/,
    change: [[/"run_at" = \$1/, '"run_at" = case when $1::timestamptz is null then now() end']],
  },
  {
    name: 'a lease is looked at without its token',
    where: /^select "id", "cancel_requested" is not null/,
    change: [[/"jobs"\."lease_token" = any\(\$2::text\[\]\)/, '$2::text[] is not null']],
  },
  {
    name: 'leases are taken that were renewed since the look at them',
    where: RECLAIM,
    change: [[IS_AS_SEEN, 'true']],
  },
  {
    name: 'leases are taken from the living',
    seed: 427,
    where: new RegExp(`${RECLAIM.source}|${LOOK_AT_LEASES.source}`),
    change: [
      [/select "leases"\.xmin::text/, `select 'as before'`],
      [IS_AS_SEEN, 'true'],
    ],
  },
  {
    name: 'leases of the dead are never reclaimed',
    seed: 7,
    where: RECLAIM,
    change: [[IS_AS_SEEN, 'false']],
  },
  {
    name: 'entries that the queue lost are not dispatched again',
    seed: 41,
    where: /^update "jobs" set "dispatched" = \$1 where/,
    change: [
      [/"dispatched" = \$1/, '"dispatched" = coalesce($1::timestamptz, "jobs"."dispatched")'],
    ],
  },
  {
    name: 'retention removes an open job',
    seed: 5,
    where: /num_nonnulls\(finished\) = 1 and "jobs"\."finished" <|^\s*with removed as/,
    change: [
      [/num_nonnulls\(finished\) = 1/, 'true'],
      [/"jobs"\."finished" (<|>=)/g, 'coalesce("jobs"."finished", "jobs"."created") $1'],
      [/and finished is not null/, ''],
    ],
  },
];

/** Plants a fault; tells how many statements had it. */
export function plant({ where, change }: PlantedFault): { rewrite: Rewrite; count(): number } {
  let count = 0;
  const rewrite = (text: string) => {
    if (!where.test(text)) return text;
    let changed = text;
    for (const [lost, instead] of change) changed = changed.replace(lost, instead);
    if (changed !== text) count++;
    return changed;
  };
  return { rewrite, count: () => count };
}
