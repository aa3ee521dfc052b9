import { createRoute, z } from '@hono/zod-openapi';
import { ApiError } from '../../../contract/errors.ts';
import { timestampSchema } from '../../../contract/values.ts';
import { bearer, jsonContent } from '../../../http/api/create-app.ts';
import { audited } from '../../../operators/audit.ts';
import { actorOf, createOperatorRouter } from '../../../operators/http/router.ts';
import type { Actor } from '../../../operators/model.ts';
import { listOperatorKeys, operatorKeyListSchema } from '../../../operators/views/keys.ts';
import { createAccount, createKey, revokeKey } from '../../accounts/accounts.ts';
import { type Closing, closeAccount } from '../../operate/actions/close-account.ts';
import {
  accountListSchema,
  apiKeyListSchema,
  findAccount,
  listAccounts,
  listApiKeys,
} from '../../operate/views/accounts.ts';
import { closingSchema, toClosingRow } from '../../operate/views/actions.ts';
import { errors } from '../errors.ts';
import type { OperatorDeps } from './deps.ts';

const shared = { tags: ['Accounts'], security: bearer };

const accountsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/accounts',
  operationId: 'listAccounts',
  summary: 'Accounts',
  description: 'Oldest first.',
  responses: errors.replies(200, 'The accounts.', accountListSchema, ['unauthorized']),
});

const createAccountRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/accounts',
  operationId: 'createAccount',
  summary: 'Create an account',
  description: 'The account has no key yet.',
  request: {
    body: { required: true, content: jsonContent(z.object({ name: z.string() }), { name: 'acme' }) },
  },
  responses: errors.replies(201, 'The account.', z.object({ id: z.string(), name: z.string() }), [
    'unauthorized',
    ...errors.ofBodies,
  ]),
});

const closingBody = z.object({
  drain: z.boolean().default(false).meta({
    description:
      'Delete its instances with their disks, and with `delete` also its volumes. False: refused while it has any.',
  }),
  dry_run: z
    .boolean()
    .default(true)
    .meta({ description: 'False: carry it out. True: only show the effect.' }),
});

/** `POST /accounts/{account}/disable` and `…/delete`. */
function closingRoute<Path extends string>(
  words: Record<'path', Path> & Record<'operationId' | 'summary' | 'description', string>,
) {
  return createRoute({
    ...shared,
    ...words,
    method: 'post',
    request: {
      params: z.object({ account: z.string().meta({ description: 'The name or the id of an account.' }) }),
      body: { required: true, content: jsonContent(closingBody, { drain: true, dry_run: false }) },
    },
    responses: errors.replies(200, 'The effect.', closingSchema, [
      'unauthorized',
      'not_found',
      'invalid_state',
      ...errors.ofBodies,
    ]),
  });
}

const disableRoute = closingRoute({
  path: '/accounts/{account}/disable',
  operationId: 'disableAccount',
  summary: 'End the keys, the password and the tokens of an account',
  description:
    'It has no access until it gets a new key. A key that a server reads from BERTH_API_KEY stays valid: remove it there.',
});

const deleteRoute = closingRoute({
  path: '/accounts/{account}/delete',
  operationId: 'deleteAccount',
  summary: 'Permanently delete an account',
  description:
    'Its instances are deleted, then its volumes: repeat the request until `deleted`. It cannot get a new key. Its row and its name stay as long as the rows of its resources.',
});

const keysRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/keys',
  operationId: 'listKeys',
  summary: 'Keys of accounts',
  description: 'Of one account, or of all; oldest first.',
  request: {
    query: z.object({
      account: z.string().optional().meta({ description: 'The name or the id of an account.' }),
    }),
  },
  responses: errors.replies(200, 'The keys.', apiKeyListSchema, ['unauthorized', 'not_found']),
});

const newKeySchema = z.object({
  label: z.string().max(200).optional(),
  expires_at: timestampSchema.optional().meta({ description: 'Absent: no expiry.' }),
});

const createKeyRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/accounts/{account}/keys',
  operationId: 'createKey',
  summary: 'Create a key for an account',
  description:
    'The key is shown only once. An account can have several valid keys, so they can be rotated without downtime.',
  request: {
    params: z.object({ account: z.string().meta({ description: 'The name or the id of an account.' }) }),
    body: { required: false, content: jsonContent(newKeySchema, { label: 'rotation of May' }) },
  },
  responses: errors.replies(201, 'The key.', z.object({ id: z.string(), api_key: z.string() }), [
    'unauthorized',
    'not_found',
    'invalid_state',
    ...errors.ofBodies,
  ]),
});

const revokeKeyRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/keys/{keyId}/revoke',
  operationId: 'revokeKey',
  summary: 'Revoke a key and every token issued with it',
  description: 'Revoking again keeps the first time. All servers apply it within seconds.',
  request: { params: z.object({ keyId: z.string() }) },
  responses: errors.replies(
    200,
    'The key is revoked.',
    z.object({ id: z.string(), revoked_at: timestampSchema }),
    ['unauthorized', 'not_found'],
  ),
});

const operatorKeysRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/operator-keys',
  operationId: 'listOperatorKeys',
  summary: 'Keys of operators',
  description: 'Oldest first. Create and revoke them on the command line: `berth operators`.',
  responses: errors.replies(200, 'The keys.', operatorKeyListSchema, ['unauthorized']),
});

/** Accounts and keys. */
export function accountRoutes(deps: Pick<OperatorDeps, 'store' | 'clock' | 'random'>) {
  const { read } = deps.store;
  const accountOf = async (nameOrId: string) => {
    const found = await findAccount(read, nameOrId);
    if (found === null) throw new ApiError('not_found', 'There is no account of this name or id.');
    return found;
  };
  const close = async (
    actor: Actor,
    closing: Closing,
    { account }: { account: string },
    { drain, dry_run: isDry }: z.output<typeof closingBody>,
  ) => toClosingRow(await closeAccount(deps, actor, { account, closing, drain, isDone: !isDry }));
  return createOperatorRouter()
    .openapi(accountsRoute, async (context) => context.json({ accounts: await listAccounts(read) }, 200))
    .openapi(createAccountRoute, async (context) => {
      const { name } = context.req.valid('json');
      const action = { action: 'account.create', subject: name };
      const { id } = await audited(deps, actorOf(context), action, (store) =>
        createAccount({ ...deps, store }, name),
      );
      return context.json({ id, name }, 201);
    })
    .openapi(disableRoute, async (context) => {
      const { req } = context;
      const closed = await close(actorOf(context), 'disable', req.valid('param'), req.valid('json'));
      return context.json(closed, 200);
    })
    .openapi(deleteRoute, async (context) => {
      const { req } = context;
      const closed = await close(actorOf(context), 'delete', req.valid('param'), req.valid('json'));
      return context.json(closed, 200);
    })
    .openapi(keysRoute, async (context) => {
      const { account } = context.req.valid('query');
      const owner = account === undefined ? undefined : await accountOf(account);
      return context.json({ keys: await listApiKeys(read, deps.clock.now(), owner?.id) }, 200);
    })
    .openapi(createKeyRoute, async (context) => {
      const { account } = context.req.valid('param');
      const name = (await findAccount(read, account))?.name ?? account;
      const { label, expires_at: expires } = context.req.valid('json');
      const expiresAt = expires === undefined ? null : Date.parse(expires);
      const action = { action: 'key.create', subject: name, detail: label === undefined ? {} : { label } };
      const { key, record } = await audited(deps, actorOf(context), action, (store) =>
        createKey({ ...deps, store }, name, { label, expiresAt }),
      );
      return context.json({ id: record.id, api_key: key }, 201);
    })
    .openapi(revokeKeyRoute, async (context) => {
      const { keyId: id } = context.req.valid('param');
      const action = { action: 'key.revoke', subject: id };
      const { revokedAt } = await audited(deps, actorOf(context), action, (store) =>
        revokeKey({ ...deps, store }, id),
      );
      return context.json({ id, revoked_at: new Date(revokedAt ?? 0).toISOString() }, 200);
    })
    .openapi(operatorKeysRoute, async (context) => context.json({ keys: await listOperatorKeys(read) }, 200));
}
