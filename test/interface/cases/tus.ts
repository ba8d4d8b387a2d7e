import { expect } from 'vitest';
import { tusMetadata } from '../../harness/clients/tus.ts';
import { type Row, row } from '../row.ts';
import { expectAnswer, expectError } from '../tools.ts';

const VERSION = { 'Tus-Resumable': '1.0.0' };
const BYTES = { ...VERSION, 'Content-Type': 'application/offset+octet-stream' };

/** Uploads by tus (docs/http/uploads.md). */
export const TUS: Row[] = [
  row(
    'tus 1.0 at /tus: creation, creation-with-upload, termination, checksum, expiration',
    'OPTIONS /tus, POST /tus, HEAD /tus/{uid}, PATCH /tus/{uid}, DELETE /tus/{uid}',
    async ({ ask, make, world }) => {
      const asked = await ask('OPTIONS', '/tus');
      expectAnswer(asked, 204);
      expect(asked.headers['tus-extension']).toBe(
        'creation,creation-with-upload,termination,checksum,expiration',
      );
      const { mid } = await make.projectWithModel();
      const metadata = {
        'Upload-Metadata': tusMetadata({ mid, parser: 'blob', aid: world.name('tus') }),
      };
      const begun = await ask('POST', '/tus', {
        headers: { ...BYTES, ...metadata, 'Upload-Length': '6' },
        body: '012',
      });
      expectAnswer(begun, 201);
      const { location = '' } = begun.headers;
      expect(location).toMatch(/^\/api\/tus\/\w+$/);
      const path = location.replace('/api', '');
      expect(Date.parse(String(begun.headers['upload-expires']))).toBeGreaterThan(Date.now());
      const stands = await ask('HEAD', path, { headers: VERSION });
      expectAnswer(stands, 200);
      expect(stands.headers).toMatchObject({ 'upload-offset': '3', 'upload-length': '6' });
      const patch = (offset: string, body: string, more: Record<string, string> = {}) =>
        ask('PATCH', path, { headers: { ...BYTES, 'Upload-Offset': offset, ...more }, body });
      expectError(await patch('0', '0'), 409, { code: 'conflict' });
      expectError(await patch('3', '3', { 'Upload-Checksum': 'sha1 AAAA' }), 460, {
        code: 'checksum_mismatch',
        reason: 'Checksum mismatch',
      });
      expectError(await patch('3', '3', { 'Tus-Resumable': '2.0.0' }), 412, {
        code: 'precondition_failed',
      });
      expectAnswer(await patch('3', '34'), 204);
      expectAnswer(await ask('DELETE', path, { headers: VERSION }), 204);
      expectError(await ask('DELETE', path, { headers: VERSION }), 404, { code: 'not_found' });
    },
  ),
];
