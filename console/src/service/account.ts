import { useMutation, useQuery } from '@tanstack/preact-query';
import { type components, unwrap } from '@windlass/client';
import { queries, windlass } from './client.ts';
import { readAll } from './pages.ts';
import type { CurrentUser } from './user.ts';

/** What a user has of the own: password, tokens and webhooks. */

type Schemas = components['schemas'];
export type Token = Schemas['Token'];
export type NewToken = Schemas['NewToken'];
export type Webhook = Schemas['Webhook'];
export type NewWebhook = Schemas['NewWebhook'];
export type Delivery = Schemas['WebhookDelivery'];

const DELIVERIES_MS = 5_000;
const DELIVERIES = 50;

export interface NewPassword {
  current: string;
  password: string;
}

/** It ends every login, this page's too, which is opened anew. */
export const useChangePassword = ({ username }: CurrentUser) =>
  useMutation({
    mutationFn: async (body: NewPassword) => {
      const params = { path: { username } };
      await unwrap(windlass.api.PUT('/api/users/{username}', { params, body }));
      const login = { username, password: body.password };
      await unwrap(windlass.api.POST('/api/login', { body: login }));
      // In between, another request of the page may have been refused.
      await queries.refetchQueries({ queryKey: ['user'] });
    },
    gcTime: 0,
  });

export const useTokens = () =>
  useQuery({
    queryKey: ['tokens'],
    queryFn: ({ signal }) =>
      readAll(query =>
        unwrap(windlass.api.GET('/api/users/-/tokens', { params: { query }, signal })),
      ),
  });

const tokensChanged = () => queries.invalidateQueries({ queryKey: ['tokens'] });

/** What is made is kept nowhere but where it is shown. */
export const useMakeToken = () =>
  useMutation({
    mutationFn: (body: NewToken) => unwrap(windlass.api.POST('/api/users/-/tokens', { body })),
    gcTime: 0,
    // Where the answer was lost it may be there, too.
    onSettled: tokensChanged,
  });

export const useEndOwnToken = () =>
  useMutation({
    meta: { done: 'The token is ended.' },
    mutationFn: (id: string) =>
      unwrap(windlass.api.DELETE('/api/users/-/tokens/{id}', { params: { path: { id } } })),
    onSettled: tokensChanged,
  });

export const useWebhooks = () =>
  useQuery({
    queryKey: ['webhooks'],
    queryFn: ({ signal }) =>
      readAll(query => unwrap(windlass.api.GET('/api/webhooks', { params: { query }, signal }))),
  });

const webhooksChanged = () => queries.invalidateQueries({ queryKey: ['webhooks'] });

export const useMakeWebhook = () =>
  useMutation({
    mutationFn: (body: NewWebhook) => unwrap(windlass.api.POST('/api/webhooks', { body })),
    gcTime: 0,
    // Where the answer was lost it may be there, too.
    onSettled: webhooksChanged,
  });

export const useRemoveWebhook = () =>
  useMutation({
    meta: { done: 'The webhook is removed.' },
    mutationFn: (id: string) =>
      unwrap(windlass.api.DELETE('/api/webhooks/{id}', { params: { path: { id } } })),
    onSettled: webhooksChanged,
  });

/** The latest that were sent, or are to be. */
export const useDeliveries = (id: string) =>
  useQuery({
    queryKey: ['webhooks', id, 'deliveries'],
    queryFn: async ({ signal }) => {
      const params = { path: { id }, query: { limit: DELIVERIES } };
      return unwrap(windlass.api.GET('/api/webhooks/{id}/deliveries', { params, signal }));
    },
    refetchInterval: DELIVERIES_MS,
  });
