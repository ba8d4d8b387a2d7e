import { CREATED, LATER, MODEL, PROJECT, pageOf } from './ids.ts';

const project = {
  id: PROJECT,
  name: 'Weather',
  description: '',
  role: 'administrator',
  created: CREATED,
  updated: LATER,
};
const { id: _id, ...ofProject } = project;
const listedProject = { _id, ...ofProject };
const acl = { administrators: [{ user: 'ada' }], writers: [{ user: 'grace' }], readers: [] };
const model = {
  id: MODEL,
  project: PROJECT,
  'model-type': 'measurements',
  name: 'A day',
  description: '',
  marking: '',
  created: CREATED,
  updated: LATER,
};
const entry = {
  key: 'runs/7.mp4',
  type: 'video/mp4',
  size: 1_234_567,
  frames: 250,
  created: CREATED,
  used: LATER,
};
const cache = { bytes: 1_234_567, limit: 0, oldest: LATER };

export const PROJECT_EXAMPLES = {
  NewProject: { name: 'Weather', acl: { writers: [{ user: 'grace' }] } },
  ProjectChanges: { description: 'What the station measured.' },
  Project: { ...project, acl, cache },
  ChangedProject: { ...project, acl, cache },
  AllProjects: { projects: [listedProject] },
  ListedProject: listedProject,
  ProjectPage: pageOf(project),
  CachePage: pageOf(entry),
  BookmarkPage: pageOf({
    id: '01KB4TC9E3H5J7K9M1N3P5Q7R9',
    digest: '2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae',
    size: 32,
    created: CREATED,
  }),
  BookmarkState: { view: 'plot', zoom: [0, 3_600] },
  NewModel: { 'model-type': 'measurements', name: 'A day' },
  ModelChanges: { marking: 'public' },
  ModelSummary: model,
  ModelPage: pageOf(model),
  Marking: { type: 'none', label: 'No marking' },
  Markings: [{ type: 'none', label: 'No marking' }],
  Model: {
    ...model,
    artifacts: [{ aid: 'day', type: 'table', input: true, size: 812_345, updated: LATER }],
    next: null,
    parses: [{ aids: ['day'], parser: 'csv', state: 'done', finished: LATER }],
  },
  NewParameter: { value: { threshold: 0.5 }, input: true },
};
