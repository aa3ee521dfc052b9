import { z } from '@hono/zod-openapi';
import { nullAsAbsent } from '../../../contract/nulls.ts';
import { createSshKeySchema, sshKeySchema, successSchema } from '../../contract/ssh-key.ts';
import { createSshKey, deleteSshKey, listSshKeys, readSshKey } from '../../ssh-keys/ssh-keys.ts';
import type { HttpDeps } from '../deps.ts';
import { ofTeams } from '../errors.ts';
import { Routes } from '../route.ts';

const oneKey = { id: z.string() };

const createExample = {
  name: 'laptop',
  publicKey:
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKjItPiOeL00NyJ28Ghk86GWpCoScix4tTl/A/EOqSmM you@example.com',
};

/** M: SSH keys. */
export function sshKeyRoutes(deps: HttpDeps) {
  return new Routes('SSH keys')
    .add('get', '/api/ssh-keys', {
      operationId: 'listSshKeys',
      summary: 'The saved keys',
      description: "Those of the caller's teams, or of one team.",
      query: { userId: z.string().optional(), teamId: z.string().optional() },
      reply: ['The newest first.', z.array(sshKeySchema), ofTeams],
      run: ({ caller, query }) => listSshKeys(deps, caller, query),
    })
    .add('post', '/api/ssh-keys', {
      operationId: 'createSshKey',
      summary: 'Save a key',
      description:
        'An OpenSSH public key for deployments of the team; ECDSA and FIDO security keys are supported.',
      body: nullAsAbsent(createSshKeySchema),
      example: createExample,
      status: 201,
      isOnce: true,
      reply: ['The key.', sshKeySchema, ofTeams],
      run: ({ caller, body, once }) => createSshKey(deps, caller, body, once),
    })
    .add('get', '/api/ssh-keys/{id}', {
      operationId: 'getSshKey',
      summary: 'One key',
      description: 'With its fingerprint.',
      params: oneKey,
      reply: ['The key.', sshKeySchema, ofTeams],
      run: ({ caller, params }) => readSshKey(deps, caller, params.id),
    })
    .add('delete', '/api/ssh-keys/{id}', {
      operationId: 'deleteSshKey',
      summary: 'Delete a key',
      description: 'Machines that already have the key keep it.',
      params: oneKey,
      reply: ['The key is deleted.', successSchema, ofTeams],
      run: ({ caller, params }) => deleteSshKey(deps, caller, params.id),
    });
}
