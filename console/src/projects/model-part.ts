import type { Model } from '../service/models.ts';
import type { Project } from '../service/projects.ts';

/** What a part of the page knows; `name` is that of the artifact that it shows. */
export interface ModelPartProps {
  project: Project;
  model: Model;
  name: string | undefined;
}
