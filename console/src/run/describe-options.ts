type Tell = [field: string, tell: (value: string) => string];

const countOf = (one: string) => (value: string) => `${value} ${one}${value === '1' ? '' : 's'}`;
const lines = (text: string) => text.split('\n').filter(line => line.trim() !== '').length;

const COMMON: Tell[] = [
  ['cwd', folder => folder],
  ['env', text => countOf('variable')(String(lines(text)))],
  ['name', name => `named ${name}`],
];
const RUN: Tell[] = [
  ['timeout', seconds => `at most ${seconds} s`],
  ['stdin', () => 'standard input'],
];
const BATCH: Tell[] = [
  ['nodes', countOf('node')],
  ['tasks', countOf('task')],
  ['cpus', cpus => `${countOf('core')(cpus)} a task`],
  ['memory', gib => `${gib} GiB`],
  ['minutes', minutes => `${minutes} min`],
  ['queue', queue => `queue ${queue}`],
  ['account', account => `account ${account}`],
  ['options', text => countOf('more option')(String(lines(text)))],
];

/** What is set of the options that go with a command, or with a batch job, for when their fields are not seen. */
export const describeOptions = (fields: Record<string, string>, isBatch: boolean): string[] =>
  [...COMMON, ...(isBatch ? BATCH : RUN)].flatMap(([field, tell]) => {
    const value = fields[field]?.trim() ?? '';
    return value === '' ? [] : [tell(value)];
  });
