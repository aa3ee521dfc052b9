import { z } from 'zod';
import { createInstanceRequestSchema, instanceStatusSchema } from '../../../contract/instance.ts';
import { within } from '../../../operator-kit/audit.ts';
import { defineAction } from '../../../operator-kit/operation.ts';
import { onBehalfOf } from '../../accounts/authenticate.ts';
import * as instances from '../../instances/create.ts';
import { findAccount } from '../views/accounts.ts';
import { toRequestedBy } from './instances.ts';
import { ActionRefused, assertOnServer } from './refused.ts';

/** Creates an instance for an account, as a tenant does. */
export const createInstance = defineAction({
  name: 'createInstance',
  tag: 'Instances',
  path: '/instances',
  summary: 'Create an instance for an account',
  description: "As the tenant's create: it is ONLINE when its SSH endpoint accepts each of `ssh_keys`.",
  input: {
    account: z.string().meta({ description: 'The name or the id of an account.' }),
    ...createInstanceRequestSchema.shape,
  },
  example: {
    account: 'acme',
    configuration_id: 'h100-sxm-1x',
    region: 'eu-frankfurt',
    name: 'demo',
    ssh_keys: [
      'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKjItPiOeL00NyJ28Ghk86GWpCoScix4tTl/A/EOqSmM you@example.com',
    ],
  },
  status: 201,
  errors: ['not_found', 'cloud_init_unsupported', 'capacity_unavailable', 'quota_exceeded'],
  reply: [
    'PROVISIONING.',
    z
      .object({ id: z.string(), account_id: z.string(), status: instanceStatusSchema, region: z.string() })
      .meta({ id: 'CreatedInstance' }),
  ],
  audit: ({ account, configuration_id: offer, region, name }) => ({
    action: 'instance.create',
    subject: account,
    detail: { offer, region, name },
    done: ({ id, account_id }) => ({ subject: id, detail: { account: account_id, offer, region, name } }),
  }),
  run: async (deps: instances.CreateDeps, { account: nameOrId, ...request }, actor) => {
    assertOnServer(deps.manifests);
    return deps.store.transact(async (tx) => {
      const account = await findAccount(tx, nameOrId);
      if (account === null || account.closedAt !== null)
        throw new ActionRefused(`There is no account ${nameOrId}: see \`berth accounts ls\`.`, 'not_found');
      await tx.accountUse.keepOpen(account.id);
      const by = toRequestedBy(actor);
      const store = onBehalfOf({ store: within(deps.store, tx), clock: deps.clock }, by);
      const { record } = await instances.createInstance({ ...deps, store }, account.id, request, {
        createdBy: by,
      });
      return { id: record.id, account_id: account.id, status: record.status, region: record.region };
    });
  },
});
