import { createRoute, z } from '@hono/zod-openapi';
import { nullAsAbsent } from '../../../contract/nulls.ts';
import { bearer, jsonContent } from '../../../http/api/create-app.ts';
import { createSshKeySchema, sshKeySchema, successSchema } from '../../contract/ssh-key.ts';
import { createSshKey, deleteSshKey, listSshKeys, readSshKey } from '../../ssh-keys/ssh-keys.ts';
import type { HttpDeps } from '../deps.ts';
import { createRouter, errors, ofTeams } from '../errors.ts';

const oneKey = z.object({ id: z.string() });
const shared = { tags: ['SSH keys'], security: bearer };

const listRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/ssh-keys',
  operationId: 'listSshKeys',
  summary: 'The saved keys',
  description: "Those of the caller's teams, or of one team.",
  request: { query: z.object({ userId: z.string().optional(), teamId: z.string().optional() }) },
  responses: errors.replies(200, 'The newest first.', z.array(sshKeySchema), ofTeams),
});

const createExample = {
  name: 'laptop',
  publicKey:
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKjItPiOeL00NyJ28Ghk86GWpCoScix4tTl/A/EOqSmM you@example.com',
};

const createKeyRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/api/ssh-keys',
  operationId: 'createSshKey',
  summary: 'Save a key',
  description:
    'An OpenSSH public key for deployments of the team; ECDSA and FIDO security keys are supported.',
  request: {
    body: { required: true, content: jsonContent(nullAsAbsent(createSshKeySchema), createExample) },
  },
  responses: errors.replies(201, 'The key.', sshKeySchema, [...ofTeams, ...errors.ofBodies]),
});

const readRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/ssh-keys/{id}',
  operationId: 'getSshKey',
  summary: 'One key',
  description: 'With its fingerprint.',
  request: { params: oneKey },
  responses: errors.replies(200, 'The key.', sshKeySchema, ofTeams),
});

const deleteRoute = createRoute({
  ...shared,
  method: 'delete',
  path: '/api/ssh-keys/{id}',
  operationId: 'deleteSshKey',
  summary: 'Delete a key',
  description: 'Machines that already have the key keep it.',
  request: { params: oneKey },
  responses: errors.replies(200, 'The key is deleted.', successSchema, ofTeams),
});

/** M: SSH keys. */
export function sshKeyRoutes(deps: HttpDeps) {
  return createRouter()
    .openapi(listRoute, async (context) =>
      context.json(await listSshKeys(deps, context.get('caller'), context.req.valid('query')), 200),
    )
    .openapi(createKeyRoute, async (context) =>
      context.json(await createSshKey(deps, context.get('caller'), context.req.valid('json')), 201),
    )
    .openapi(readRoute, async (context) =>
      context.json(await readSshKey(deps, context.get('caller'), context.req.valid('param').id), 200),
    )
    .openapi(deleteRoute, async (context) =>
      context.json(await deleteSshKey(deps, context.get('caller'), context.req.valid('param').id), 200),
    );
}
