import { type CachePlace, useProjectNames } from '../service/videos.ts';

/** Where a video is kept for the people of a project; nothing where there is no project. */
export function CacheFields({ suggestion, required }: { suggestion: string; required?: boolean }) {
  const { data: projects } = useProjectNames();
  if (!projects || projects.length === 0) return null;
  return (
    <div class="two">
      <label class="field">
        <span>Keep it in the cache of</span>
        <select class="input" name="project" required={required}>
          <option value="">{required ? 'a project …' : 'no project'}</option>
          {projects.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>Under the key</span>
        <input class="input" name="key" required defaultValue={suggestion} maxLength={200} />
      </label>
    </div>
  );
}

export function readCacheFields(fields: FormData): CachePlace | undefined {
  const project = String(fields.get('project') ?? '');
  return project === '' ? undefined : { project, key: String(fields.get('key')).trim() };
}
