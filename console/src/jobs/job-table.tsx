import type { ListedJob } from '../service/jobs.ts';
import { TableBox } from '../ui/table-box.tsx';
import { JobRow } from './job-row.tsx';

interface JobTableProps {
  jobs: ListedJob[];
  label: string;
  showOwner?: boolean;
}

export const JobTable = ({ jobs, label, showOwner = false }: JobTableProps) => (
  <TableBox label={label}>
    <table class="jobs" aria-label={label}>
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Job</th>
          <th scope="col">Kind</th>
          <th scope="col">Host</th>
          {showOwner && <th scope="col">Owner</th>}
          <th scope="col">Created</th>
          <th scope="col" class="numbers">
            Took
          </th>
        </tr>
      </thead>
      <tbody>
        {jobs.map(job => (
          <JobRow key={job.id} job={job} showOwner={showOwner} />
        ))}
      </tbody>
    </table>
  </TableBox>
);
