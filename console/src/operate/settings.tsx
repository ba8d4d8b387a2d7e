import { type Setting, useSettings } from '../service/operations.ts';
import { Problem } from '../ui/problem.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { useAddress } from '../ui/use-address.ts';
import { Wait } from '../ui/wait.tsx';

const FROM: Record<Setting['from'], string> = {
  environment: 'set',
  default: 'default',
  unset: 'not set',
};

/** What is in force in the API's process, and where from; first how long things are kept. */
export function Settings() {
  const [search, change] = useAddress();
  const wanted = search.get('find') ?? '';
  const { data, error } = useSettings();
  const found = data?.filter(({ name, meaning }) =>
    `${name} ${meaning}`.toLowerCase().includes(wanted.toLowerCase()),
  );
  const kept = found?.filter(isKept) ?? [];
  const others = found?.filter(setting => !isKept(setting)) ?? [];
  return (
    <>
      <div class="page-head">
        <h2>Settings</h2>
        <input
          class="input short"
          type="search"
          placeholder="Find a setting"
          aria-label="Find a setting"
          value={wanted}
          onInput={event => change({ find: event.currentTarget.value })}
        />
      </div>
      {error && <Problem error={error} />}
      {!data && !error && <Wait>Asking for settings …</Wait>}
      {found?.length === 0 && <p class="muted">No setting has that in its name or meaning.</p>}
      {kept.length > 0 && <SettingTable title="How long things are kept" settings={kept} />}
      {others.length > 0 && <SettingTable title="All others" settings={others} />}
    </>
  );
}

const isKept = ({ name }: Setting) => /_DAYS$|RETENTION/.test(name);

const SettingTable = ({ title, settings }: { title: string; settings: Setting[] }) => (
  <div class="card">
    <div class="card-head">
      <h3>{title}</h3>
    </div>
    <Table
      label={title}
      look="settings"
      rows={settings}
      keyOf={({ name }) => name}
      columns={COLUMNS}
    />
  </div>
);

/** Between backticks is code. */
const inCode = (text: string) =>
  text.split('`').map((part, n) => (n % 2 === 1 ? <code key={n}>{part}</code> : part));

const COLUMNS: Column<Setting>[] = [
  { name: 'Setting', look: 'mono', cell: ({ name }) => name },
  {
    name: 'Value',
    look: 'mono',
    cell: ({ secret, value }) =>
      secret ? <span class="muted">secret</span> : (value ?? <span class="muted">–</span>),
  },
  {
    name: 'From',
    cell: ({ from }) => (from === 'environment' ? <strong>{FROM[from]}</strong> : FROM[from]),
  },
  { name: 'Meaning', cell: ({ meaning }) => inCode(meaning) },
];
