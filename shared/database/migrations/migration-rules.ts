import { type Migration, type Statement, withoutComments } from './migration-files.ts';

/**
 * The forms of statements beside which programs of the previous release work, and which lock a large table for a moment
 * only. All others are refused (decision 29).
 */

/** The migrations before it were released without these rules. */
const FIRST_CHECKED = 5;
/**
 * Those before it drop indexes without saying since when nobody needs them. Their files stay as they are: a run that was
 * cut compares their hashes.
 */
const FIRST_NOTED_INDEX = 41;

const TABLE = '(?<table>[\\w.]+)';
const ALTER = `^alter table (?:only |if exists )*${TABLE} `;

/** Takes nothing from anybody: allowed at any time. */
const EXPAND = [
  /^create (table|sequence|type|view) /,
  /^create (or replace )?(function|procedure|trigger) /,
  /^create (unique )?index concurrently /,
  new RegExp(`${ALTER}add constraint \\w+ (foreign key|check) ?\\(.* not valid$`),
  new RegExp(`${ALTER}add constraint \\w+ (unique|primary key) using index \\w+$`),
  new RegExp(`${ALTER}validate constraint \\w+$`),
  new RegExp(`${ALTER}alter column \\w+ (set default|drop not null|set statistics|set storage)\\b`),
  new RegExp(`${ALTER}(set|reset) \\(`),
  new RegExp(`^insert into ${TABLE} .*\\bvalues\\b`),
  /^comment on /,
];
const ADD_COLUMN = new RegExp(`${ALTER}add (column )?(if not exists )?\\w+ (?<definition>.*)$`);

const DROP_INDEX = /^drop index concurrently /;
/** Takes away what programs may use, or what makes them fast: allowed once the previous release does without. */
const CONTRACT = [
  DROP_INDEX,
  /^drop (table|view|function|trigger|type|sequence) /,
  /^alter index [\w.]+ rename /,
  new RegExp(`${ALTER}(drop column|drop constraint|rename)\\b`),
  new RegExp(`${ALTER}alter column \\w+ (drop default|set not null)$`),
];
const SET_NOT_NULL = new RegExp(`${ALTER}alter column (?<column>\\w+) set not null$`);

const CONTRACT_COMMENT = /^-- contract: not needed since (\S+)$/m;

const ADVICE: [RegExp, string][] = [
  [/^create (unique )?index /, 'Create it concurrently: `.concurrently()` in the table.'],
  [/^drop index /, 'Drop it concurrently.'],
  [/^(update|delete|insert) /, 'Move data in batches: `-- batches: "table" by "key"`, = any($1).'],
  [/ add constraint /, 'Add it NOT VALID, then VALIDATE CONSTRAINT; or USING INDEX.'],
  [
    / set data type | type /,
    'It writes the table anew: add a column, and move the data in batches.',
  ],
];

interface Finding {
  /** The file and the statement. */
  where: string;
  /** What is wrong, and what to do. */
  problem: string;
}

/** What the migrations from FIRST_CHECKED on must not do. */
export function findUnsafe(migrations: Pick<Migration, 'tag' | 'statements'>[]): Finding[] {
  const checked = migrations.filter(({ tag }) => Number(tag.slice(0, 4)) >= FIRST_CHECKED);
  const all = checked.flatMap(({ statements }) => statements.map(({ text }) => simplify(text)));
  return checked.flatMap(({ tag, statements }) => {
    const texts = statements.map(({ text }) => simplify(text));
    const created = texts.flatMap(
      text => /^create table (?:if not exists )?([\w.]+)/.exec(text)?.[1] ?? [],
    );
    return statements.flatMap((statement, n) => {
      const isNoted = Number(tag.slice(0, 4)) >= FIRST_NOTED_INDEX;
      if (!isNoted && DROP_INDEX.test(texts[n] ?? '')) return [];
      const problem = check(statement, { created, all });
      return problem ? [{ where: `${tag}, statement ${n + 1}`, problem }] : [];
    });
  });
}

/** The releases since which something is not needed, as the comments of these migrations name them. */
export function listContracts(migrations: Pick<Migration, 'tag' | 'statements'>[]): string[] {
  return migrations.flatMap(({ statements }) =>
    statements.flatMap(({ text }) => CONTRACT_COMMENT.exec(text)?.[1] ?? []),
  );
}

function check(
  statement: Statement,
  { created, all }: { created: string[]; all: string[] },
): string | undefined {
  const text = simplify(statement.text);
  if (text === '') return undefined;
  if (text.includes(';')) return 'Separate its statements by `--> statement-breakpoint`.';
  if (statement.form === 'batches')
    return text.includes('any($1)')
      ? undefined
      : 'It changes other rows than its keys: `= any($1)`.';
  if (isOfNewTable(text, created)) return undefined;
  if (/, (add|alter|drop|rename|set|validate) /.test(text) && text.startsWith('alter table'))
    return 'One action in a statement.';
  const column = ADD_COLUMN.exec(text)?.groups?.definition;
  if (column !== undefined && !text.includes(' add constraint ')) return checkColumn(column);
  if (EXPAND.some(form => form.test(text))) return undefined;
  if (CONTRACT.some(form => form.test(text))) return checkContract(statement.text, all);
  const advice = ADVICE.find(([form]) => form.test(text))?.[1] ?? 'See decision 29.';
  return `No such statement is known to be safe: ${text.slice(0, 80)}. ${advice}`;
}

/** A table that the same migration creates has no rows yet, and nobody uses it. */
function isOfNewTable(text: string, created: string[]): boolean {
  const table =
    /^(?:alter table (?:only )?|insert into )([\w.]+)/.exec(text)?.[1] ??
    /^create (?:unique )?index .*?\bon (?:only )?([\w.]+)/.exec(text)?.[1];
  return table !== undefined && created.includes(table);
}

/** The default of a new column is stored once, if it is the same for all rows. */
function checkColumn(definition: string): string | undefined {
  if (/\b(references|unique|primary key|check|generated|(small|big)?serial)\b/.test(definition))
    return 'A new column has a type and a default; add the constraint apart, NOT VALID.';
  const [, value] = /\bdefault (.*)$/.exec(definition) ?? [];
  if (/\bnot null\b/.test(definition) && value === undefined)
    return 'The old programs insert rows without it: make it nullable, or give it a default.';
  if (value?.replaceAll('now()', '').includes('('))
    return 'A default that differs from row to row writes the table anew: fill it in batches.';
  return undefined;
}

function checkContract(text: string, all: string[]): string | undefined {
  if (!CONTRACT_COMMENT.test(text))
    return 'Programs of the previous release use it. Once they do not: `-- contract: not needed since COMMIT`.';
  const { table, column } = SET_NOT_NULL.exec(simplify(text))?.groups ?? {};
  if (column === undefined) return undefined;
  const added = new RegExp(
    `^alter table ${table} add constraint (\\w+) check ?\\(\\(?${column} is not null\\)?\\) not valid$`,
  );
  const names = all.flatMap(other => added.exec(other)?.[1] ?? []);
  if (names.some(name => all.includes(`alter table ${table} validate constraint ${name}`)))
    return undefined;
  return `It reads the whole table under a lock. First add a check (${column} is not null) not valid, and validate it.`;
}

/** In one line and in lower case, without comments, quotes and the contents of strings. */
function simplify(text: string): string {
  return withoutComments(text)
    .replace(/(\$\w*\$).*?\1/gs, "''")
    .replace(/'(?:[^']|'')*'/g, "''")
    .replaceAll('"', '')
    .replaceAll('public.', '')
    .replace(/\s+/g, ' ')
    .replace(/ ?;$/, '')
    .trim()
    .toLowerCase();
}
