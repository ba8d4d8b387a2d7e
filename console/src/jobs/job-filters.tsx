import { Link } from 'wouter-preact';
import { useHosts } from '../service/hosts.ts';
import { itemsOf } from '../service/pages.ts';
import {
  useModelName,
  useModels,
  useProjectName,
  useProjects,
} from '../service/projects-of-jobs.ts';
import { type CurrentUser, useUsers } from '../service/user.ts';
import { Choice } from '../ui/choice.tsx';
import { CreatedFilter } from './created-filter.tsx';
import { type Filter, isOfOthers, STATES } from './job-filter.ts';
import { SearchBox } from './search-box.tsx';
import { SelectFilter } from './select-filter.tsx';

const KINDS = Object.entries({
  command: 'Commands',
  batch: 'Batch jobs',
  video: 'Videos',
  parse: 'Parsed uploads',
  view: 'Views of tables',
  copy: 'Copies',
  connect: 'Logins',
  look: 'Looks at files',
});

/** How long a list of projects is good for a filter. */
const STALE_MS = 30_000;

interface JobFiltersProps {
  filter: Filter;
  user: CurrentUser;
  onChange: (changes: Filter) => void;
}

export function JobFilters({ filter, user, onChange }: JobFiltersProps) {
  const hosts = useHosts();
  const hostNames = itemsOf(hosts.data)?.map(({ name }) => [name, name] as const) ?? [];
  const isOff = isOfOthers(filter, user.username);
  return (
    <div class="row filters">
      <div class="tabs" role="radiogroup" aria-label="State">
        {['All', ...STATES.keys()].map(name => (
          <label key={name}>
            <input
              type="radio"
              name="state"
              checked={(filter.state ?? 'All') === name}
              onChange={() => onChange({ state: name === 'All' ? undefined : name })}
            />
            {name}
          </label>
        ))}
      </div>
      <SearchBox filter={filter} isOff={isOff} onChange={onChange} />
      <SelectFilter
        label="Kind"
        all="All kinds"
        value={filter.kind}
        options={KINDS}
        onChange={kind => onChange({ kind })}
      />
      {(hostNames.length > 0 || filter.host) && (
        <Choice
          isBare
          label="Host"
          none="All hosts"
          value={filter.host ?? ''}
          options={hostNames}
          more={hosts}
          onChange={host => onChange({ host })}
        />
      )}
      {!isOff && <ProjectFilters filter={filter} onChange={onChange} />}
      <CreatedFilter filter={filter} onChange={onChange} />
      {user.administrator && <OwnerFilter filter={filter} user={user} onChange={onChange} />}
      {Object.keys(filter).length > 0 && (
        <Link class="button" data-look="quiet" href="/jobs">
          Clear
        </Link>
      )}
    </div>
  );
}

function OwnerFilter({ filter, user, onChange }: JobFiltersProps) {
  const list = useUsers();
  const others = itemsOf(list.data)?.filter(({ username }) => username !== user.username) ?? [];
  return (
    <Choice
      isBare
      label="Owner"
      none="My jobs"
      value={filter.owner ?? ''}
      options={[EVERYONE, ...others.map(({ username }) => [username, username] as const)]}
      more={list}
      onChange={owner => onChange({ owner })}
    />
  );
}
const EVERYONE = ['*', "Everyone's jobs"] as const;

function ProjectFilters({ filter, onChange }: Pick<JobFiltersProps, 'filter' | 'onChange'>) {
  const { project, model, session } = filter;
  const projectList = useProjects({ staleTime: STALE_MS });
  const modelList = useModels(project);
  const projects = itemsOf(projectList.data) ?? [];
  const models = itemsOf(modelList.data) ?? [];
  // The address may name a project or model that is not in the lists read so far.
  const projectName = useProjectName(project);
  const modelName = useModelName(model);
  return (
    <>
      {(projects.length > 0 || project) && (
        <Choice
          isBare
          label="Project"
          none="All projects"
          value={project ?? ''}
          valueName={projectName}
          options={projects.map(({ id, name }) => [id, name] as const)}
          more={projectList}
          onChange={chosen => onChange({ project: chosen, model: undefined })}
        />
      )}
      {(project || model) && (
        <Choice
          isBare
          label="Model"
          none="All models"
          value={model ?? ''}
          valueName={modelName}
          options={models.map(({ id, name }) => [id, name] as const)}
          more={modelList}
          onChange={chosen => onChange({ model: chosen })}
        />
      )}
      {session && (
        <SelectFilter
          label="Login"
          all="All logins"
          value={session}
          options={[[session, 'One login']]}
          onChange={chosen => onChange({ session: chosen })}
        />
      )}
    </>
  );
}
