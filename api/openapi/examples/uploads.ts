import { CREATED, JOB, LATER, MODEL, pageOf, SESSION, UPLOAD } from './ids.ts';

const upload = {
  id: UPLOAD,
  mid: MODEL,
  parser: 'csv',
  input: true,
  state: 'open',
  created: CREATED,
  accessed: LATER,
};

export const UPLOAD_EXAMPLES = {
  ParserList: {
    items: [
      {
        name: 'blob',
        meaning: 'Keeps the file as it is.',
        makes: 'file',
        extensions: [],
        parameters: {},
      },
    ],
  },
  NewUpload: { mid: MODEL, input: true, parser: 'csv', aids: ['day'] },
  Upload: {
    ...upload,
    aids: ['day'],
    parts: [
      { fid: 0, pid: 0, size: 500_000, digest: '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' },
    ],
  },
  UploadPage: pageOf(upload),
  PartForm: { file: 'the bytes' },
  RemoteFile: { sid: SESSION, path: '/home/ada/day.csv' },
  UploadEnd: { uploaded: [5] },
  AcceptedUpload: { missing: [], job: JOB },
};
