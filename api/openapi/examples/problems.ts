const problem = {
  type: '/api/docs#session_not_found',
  title: 'Session does not exist or has timed out.',
  status: 404,
  detail: 'Session does not exist or has timed out.',
  code: 'session_not_found',
  hint: 'Open a session with POST /api/remotes.',
  requestId: '4f6d1c1e-8f0b-4a53-9d57-0c7cf7a4a2c9',
};

export const PROBLEM_EXAMPLES = {
  Problem: problem,
  PartsProblem: {
    type: '/api/docs#upload_incomplete',
    title: 'Upload incomplete.',
    status: 400,
    detail: 'Upload incomplete: 1 part is missing.',
    code: 'upload_incomplete',
    requestId: problem.requestId,
    missing: [[0, 4]],
    excess: [],
  },
};
