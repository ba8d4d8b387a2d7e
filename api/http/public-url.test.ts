import express from 'express';
import { expect, test } from 'vitest';
import { locateBelow, publicPath, publicUrl } from './public-url.ts';

const at = (PUBLIC_URL?: string, HOST = '127.0.0.1') => ({ PUBLIC_URL, HOST, PORT: 8080 });

test('the address is PUBLIC_URL, else that of HOST and PORT', () => {
  expect(publicUrl(at())).toBe('http://127.0.0.1:8080');
  expect(publicUrl(at(undefined, '::1'))).toBe('http://[::1]:8080');
  expect(publicUrl(at('https://site.example'))).toBe('https://site.example');
  expect(publicUrl(at('https://site.example/a/b/'))).toBe('https://site.example/a/b');
});

test('its path has no slash at the end', () => {
  expect(publicPath(at())).toBe('');
  expect(publicPath(at('https://site.example/'))).toBe('');
  expect(publicPath(at('https://site.example/a/b/'))).toBe('/a/b');
});

test('Location names the path, and another site as it is', () => {
  const locate = (path: string, url: string) => {
    const app = express();
    locateBelow(app, path);
    const fields: Record<string, unknown> = {};
    const res = Object.create(app.response, {
      set: { value: (name: string, value: unknown) => Object.assign(fields, { [name]: value }) },
    });
    res.location(url);
    return fields.Location;
  };
  expect(locate('', '/api/jobs/1')).toBe('/api/jobs/1');
  expect(locate('/a', '/api/jobs/1')).toBe('/a/api/jobs/1');
  expect(locate('/a', 'https://other.example/')).toBe('https://other.example/');
});
