import { Link } from 'wouter-preact';
import { useHosts } from '../service/hosts.ts';
import { useModels, useProjects } from '../service/projects-of-jobs.ts';
import { type CurrentUser, useUserNames } from '../service/user.ts';
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

interface JobFiltersProps {
  filter: Filter;
  user: CurrentUser;
  onChange: (changes: Filter) => void;
}

export function JobFilters({ filter, user, onChange }: JobFiltersProps) {
  const { data: hosts = [] } = useHosts();
  const { data: users = [] } = useUserNames(user.administrator);
  const others = users.filter(name => name !== user.username);
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
      {(hosts.length > 0 || filter.host) && (
        <SelectFilter
          label="Host"
          all="All hosts"
          value={filter.host}
          options={hosts.map(({ name }) => [name, name] as const)}
          onChange={host => onChange({ host })}
        />
      )}
      {!isOff && <ProjectFilters filter={filter} onChange={onChange} />}
      <CreatedFilter filter={filter} onChange={onChange} />
      {user.administrator && (
        <SelectFilter
          label="Owner"
          all="My jobs"
          value={filter.owner}
          options={[['*', "Everyone's jobs"], ...others.map(name => [name, name] as const)]}
          onChange={owner => onChange({ owner })}
        />
      )}
      {Object.keys(filter).length > 0 && (
        <Link class="button" data-look="quiet" href="/jobs">
          Clear
        </Link>
      )}
    </div>
  );
}

function ProjectFilters({ filter, onChange }: Pick<JobFiltersProps, 'filter' | 'onChange'>) {
  const { project, model, session } = filter;
  const { data: projects = [] } = useProjects();
  const { data: models = [] } = useModels(project);
  return (
    <>
      {(projects.length > 0 || project) && (
        <SelectFilter
          label="Project"
          all="All projects"
          value={project}
          options={projects.map(({ id, name }) => [id, name] as const)}
          onChange={chosen => onChange({ project: chosen, model: undefined })}
        />
      )}
      {(project || model) && (
        <SelectFilter
          label="Model"
          all="All models"
          value={model}
          options={models.map(({ id, name }) => [id, name] as const)}
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
