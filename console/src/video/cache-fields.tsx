import { useState } from 'preact/hooks';
import { itemsOf } from '../service/pages.ts';
import { canWrite, useProjects } from '../service/projects-of-jobs.ts';
import type { CacheLocation } from '../service/videos.ts';
import { Choice } from '../ui/choice.tsx';

/** Where a video is kept for the people of a project; nothing where there is none that the user writes. */
export function CacheFields({ suggestion, required }: { suggestion: string; required?: boolean }) {
  const list = useProjects();
  const projects = (itemsOf(list.data) ?? []).filter(canWrite);
  const [project, choose] = useState('');
  if (projects.length === 0 && !list.hasNextPage) return null;
  return (
    <div class="two">
      <Choice
        label="Keep it in the cache of"
        name="project"
        required={required}
        none={required ? 'a project …' : 'no project'}
        value={project}
        options={projects.map(({ id, name }) => [id, name] as const)}
        more={list}
        onChange={choose}
      />
      <label class="field">
        <span>Under the key</span>
        <input class="input" name="key" required defaultValue={suggestion} maxLength={200} />
      </label>
    </div>
  );
}

export function readCacheFields(fields: FormData): CacheLocation | undefined {
  const project = String(fields.get('project') ?? '');
  return project === '' ? undefined : { project, key: String(fields.get('key')).trim() };
}
