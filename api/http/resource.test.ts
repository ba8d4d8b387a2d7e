import express from 'express';
import { expect, test } from 'vitest';
import { operation } from '../openapi/operation.ts';
import { comparePaths, createRouter, registerResources, resource } from './resource.ts';

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

test('two resources at one path are refused, whatever their parameters are called', () => {
  const router = createRouter();
  resource(router, '/users/:username', { get: done });
  resource(router, '/users/-', { get: done });
  resource(router, '/users/:name', { put: done });
  express().use(router);
  expect(() => registerResources(router)).toThrow(/\/users\/:username and \/users\/:name/);
});
