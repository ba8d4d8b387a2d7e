import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { useSessions } from '../service/hosts.ts';
import { exitStatus, isOwn, type Job, type ListedJob } from '../service/jobs.ts';
import { apiPath } from '../service/place.ts';
import { useModelName, useProjectName } from '../service/projects-of-jobs.ts';
import { nameOfEngine } from './engines.ts';

/** What else is known of a job, with links to what belongs to it. */
export function JobFacts({ job }: { job: ListedJob }) {
  const own = isOwn(job) ? job : undefined;
  const code = exitStatus(job);
  const { id, state, reason, nodes } = own?.batch ?? {};
  const words = [id, state, reason, nodes].filter(Boolean).join(', ');
  return (
    <dl class="facts">
      <Fact name="Kind">{job.kind}</Fact>
      {job.host && (
        <Fact name="Host">
          <Link href={`/jobs?host=${encodeURIComponent(job.host)}`} title="All jobs there">
            {job.host}
          </Link>
        </Fact>
      )}
      {own?.session && <SessionFact session={own.session} />}
      <Fact name="Owner">{job.owner}</Fact>
      {code !== undefined && <Fact name="Exit status">{code}</Fact>}
      {own?.project && <PlaceFacts job={own} project={own.project} />}
      {own?.batch && words && <Fact name={nameOfEngine(own.batch.engine)}>{words}</Fact>}
      {own?.retryOf && (
        <Fact name="Again">
          <Link href={`/jobs/${own.retryOf}`}>the job before</Link>
        </Fact>
      )}
      <Fact name="Id">
        <code>{job.id}</code>{' '}
        <a
          href={apiPath(`jobs/${encodeURIComponent(job.id)}`)}
          title="The record as programs see it"
        >
          JSON
        </a>
      </Fact>
    </dl>
  );
}

/** The login by which it was started leads back to its host as long as it is open. */
function SessionFact({ session }: { session: string }) {
  const { data: sessions } = useSessions();
  const open = sessions?.find(({ sid }) => sid === session);
  if (!sessions) return null;
  return (
    <Fact name="Login">
      {open ? (
        <>
          <Link href={`/run?session=${session}`}>Run more there</Link>,{' '}
          <Link href={`/files?session=${session}`}>files</Link>
        </>
      ) : (
        <>
          has ended, <Link href={`/jobs?session=${session}`}>its jobs</Link>
        </>
      )}
    </Fact>
  );
}

/** Names where they may be seen, ids else. */
function PlaceFacts({ job: { model, upload }, project }: { job: Job; project: string }) {
  const projectName = useProjectName(project) ?? project;
  const modelName = useModelName(model ?? undefined) ?? model;
  const base = `/projects/${project}`;
  return (
    <>
      <Fact name="Project">
        <Link href={`${base}/models`}>{projectName}</Link>
      </Fact>
      {model && (
        <Fact name="Model">
          <Link href={`${base}/models/${model}/content`}>{modelName}</Link>
        </Fact>
      )}
      {model && upload && (
        <Fact name="Upload">
          <Link href={`${base}/models/${model}/upload`}>{upload}</Link>
        </Fact>
      )}
    </>
  );
}

const Fact = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);
