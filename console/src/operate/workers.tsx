import { useDrain, type Worker } from '../service/operations.ts';
import { Button } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { Problem } from '../ui/problem.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Ago } from '../ui/time.tsx';

/** The workers alive. */
export function Workers({ workers }: { workers: Worker[] }) {
  if (workers.length === 0)
    return (
      <div class="card">
        <Empty title="No worker is alive">
          <p>
            Jobs are accepted, and wait for one. Start <code>node dist/workers/main.js</code> on any
            machine that has the settings of the workers, or look into the log of those that
            stopped.
          </p>
        </Empty>
      </div>
    );
  return (
    <div class="card">
      <Table
        label="Workers"
        rows={workers}
        keyOf={({ id }) => id}
        columns={COLUMNS}
        actions={worker => <Drain worker={worker} />}
      />
    </div>
  );
}

const COLUMNS: Column<Worker>[] = [
  { name: 'Worker', look: 'mono ellipsis', title: ({ id }) => id, cell: ({ id }) => id },
  { name: 'Machine', cell: ({ host }) => host },
  {
    name: 'Does',
    cell: ({ kinds }) => (
      <span class="ellipsis" title={kinds.join(', ')}>
        {kinds.join(', ')}
      </span>
    ),
  },
  {
    name: 'Runs',
    look: 'numbers',
    cell: ({ running, slots }) =>
      `${running} of ${Object.values(slots).reduce((sum, count) => sum + count, 0)}`,
  },
  { name: 'Version', cell: ({ version }) => version ?? 'older' },
  { name: 'Started', cell: ({ started }) => <Ago at={started} /> },
];

function Drain({ worker: { id, draining } }: { worker: Worker }) {
  const drain = useDrain();
  return (
    <>
      <span role="status">
        {draining && (
          <span class="badge" data-state="queued">
            Takes no more
          </span>
        )}
      </span>
      <Button
        size="small"
        disabled={drain.isPending}
        aria-label={draining ? `Let ${id} take jobs again` : `Drain ${id}`}
        title={draining ? 'Let it take jobs again' : 'It ends what it has, and takes no more'}
        onClick={() => drain.mutate({ id, draining: !draining })}
      >
        {draining ? 'Take jobs again' : 'Drain'}
      </Button>
      {drain.error && <Problem error={drain.error} />}
    </>
  );
}
