import express from 'express';
import { expect, test } from 'vitest';
import { operation } from '../openapi/operation.ts';
import {
  comparePaths,
  createRouter,
  matchesPath,
  registerResources,
  resource,
} from './resource.ts';

const PATHS = [
  '/',
  '/jobs',
  '/jobs/:id',
  '/jobs/:id/events',
  '/projects/:pid/cache',
  '/projects/:pid/cache/*key',
  '/remotes/launch',
  '/remotes/:sid',
  '/remotes/:sid/browse{/*path}',
  '/remotes/:sid/videos/:vsid',
  '/users/-/tokens',
  '/users/:username',
];
const done = operation({
  id: 'doNothing',
  topic: 'operations',
  summary: '',
  answers: {},
  handle: ({ res }) => void res.end(),
});

test('literal segments come before parameters, parameters before the rest of a path', () => {
  expect(PATHS.toReversed().sort(comparePaths)).toEqual(PATHS);
  expect(comparePaths('/users/:username', '/users/:name')).toBe(0);
});

test('a path is one of a pattern segment by segment', () => {
  const matches = (path: string) => PATHS.filter(pattern => matchesPath(pattern, path));
  expect(matches('/jobs/1/events')).toEqual(['/jobs/:id/events']);
  expect(matches('/projects/1/cache/a/b%2Fc')).toEqual(['/projects/:pid/cache/*key']);
  expect(matches('/remotes/1/browse')).toEqual(['/remotes/:sid/browse{/*path}']);
  expect(matches('/remotes/1/browse/a/b')).toEqual(['/remotes/:sid/browse{/*path}']);
  expect(matches('/users/-/tokens')).toEqual(['/users/-/tokens']);
  for (const none of ['/jobs/', '/jobs//events', '/projects/1/cache/', '/remotes/1/browsers'])
    expect([none, matches(none)]).toEqual([none, []]);
});

test('two resources at one path are refused, whatever their parameters are called', () => {
  const router = createRouter();
  resource(router, '/users/:username', { get: done });
  resource(router, '/users/-', { get: done });
  resource(router, '/users/:name', { put: done });
  express().use(router);
  expect(() => registerResources(router)).toThrow(/\/users\/:username and \/users\/:name/);
});
