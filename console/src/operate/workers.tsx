import { useDrain, type Worker } from '../service/operations.ts';
import { Button } from '../ui/button.tsx';
import { Empty } from '../ui/empty.tsx';
import { Problem } from '../ui/problem.tsx';
import { TableBox } from '../ui/table-box.tsx';
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
      <TableBox label="Workers">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Worker</th>
              <th scope="col">Machine</th>
              <th scope="col">Does</th>
              <th scope="col" class="numbers">
                Runs
              </th>
              <th scope="col">Version</th>
              <th scope="col">Started</th>
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {workers.map(worker => (
              <WorkerRow key={worker.id} worker={worker} />
            ))}
          </tbody>
        </table>
      </TableBox>
    </div>
  );
}

function WorkerRow({ worker }: { worker: Worker }) {
  const drain = useDrain();
  const { id, draining } = worker;
  const slots = Object.values(worker.slots).reduce((sum, count) => sum + count, 0);
  return (
    <tr>
      <th scope="row" class="mono ellipsis" title={id}>
        {id}
      </th>
      <td>{worker.host}</td>
      <td>
        <span class="ellipsis" title={worker.kinds.join(', ')}>
          {worker.kinds.join(', ')}
        </span>
      </td>
      <td class="numbers">
        {worker.running} of {slots}
      </td>
      <td>{worker.version ?? 'older'}</td>
      <td>
        <Ago at={worker.started} />
      </td>
      <td class="actions">
        {draining && (
          <span class="badge" data-state="queued">
            Takes no more
          </span>
        )}
        <Button
          size="small"
          disabled={drain.isPending}
          title={draining ? 'Let it take jobs again' : 'It ends what it has, and takes no more'}
          onClick={() => drain.mutate({ id, draining: !draining })}
        >
          {draining ? 'Take jobs again' : 'Drain'}
        </Button>
        {drain.error && <Problem error={drain.error} />}
      </td>
    </tr>
  );
}
