import { createClient } from '../../client/create-client.ts';
import { type Identified, type OrchestratorClient, ProviderError } from '../../client/orchestrator-client.ts';
import type { Instance } from '../../contract/instance.ts';
import { Fatal } from '../../ports/errors.ts';
import { systemClock } from '../../runtime/system.ts';
import { type Context, readCa, readKey } from '../context/contexts.ts';
import { unreachable } from '../context/unreachable.ts';
import { inFlags, type Machine, type Machines } from './machine.ts';

const TIMEOUT_MS = 30_000;

export type TenantClient = Machines &
  Pick<OrchestratorClient, 'listInstances' | 'getInstance' | Verb | 'deleteInstance'>;
export type Verb = 'startInstance' | 'stopInstance' | 'restartInstance';

/** Calls the server of a context with the key of an account, and closes the connection after `body`. @throws {Fatal} */
export async function withTenant<T>(
  context: Context,
  body: (client: TenantClient) => Promise<T>,
): Promise<T> {
  const client = createClient({
    baseUrl: context.url,
    credential: { apiKey: readKey(context) },
    allowPrivate: true,
    timeoutMs: TIMEOUT_MS,
    clock: systemClock,
    ca: readCa(context),
  });
  try {
    return await body({ ...client, ...machinesOf(client) });
  } catch (error) {
    throw error instanceof ProviderError ? toFatal(context, error) : error;
  } finally {
    await client.close();
  }
}

function machinesOf(client: OrchestratorClient): Machines {
  return {
    search: async () =>
      (await client.listInstances()).map(({ id, name = null, region = '' }) => ({ id, name, region })),
    get: async ({ id, region }) => {
      const found = await client.getInstance(id, region).catch((error: unknown) => {
        if (error instanceof ProviderError && error.problem === 'not_found') return null;
        throw error;
      });
      return found && toMachine(found);
    },
    create: async (request, account) => {
      if (account !== undefined)
        throw new Fatal('--account needs the key of an operator: the key of an account has its own account.');
      const created = await client.createInstance(request, crypto.randomUUID());
      return { id: created.id, region: created.region ?? request.region };
    },
  };
}

function toMachine(instance: Instance): Machine {
  const { public_ip: host, ssh_port: port, ssh_username: user } = instance;
  const isReachable = host !== undefined && port !== undefined && user !== undefined;
  return {
    id: instance.id,
    name: instance.name ?? null,
    status: instance.status,
    region: instance.region,
    endpoint: isReachable ? { host, port, user } : null,
    error: instance.error ?? null,
    progress: null,
    console: null,
  };
}

/** The columns of an instance in a list. */
export function toRow(instance: Identified<Instance>): object {
  const { id, name, status, configuration_id: offer, region, public_ip: ip, ssh_port: port } = instance;
  const { ssh_username: user, error, created_at } = instance;
  const endpoint = ip === undefined ? undefined : `${user}@${ip}:${port}`;
  const row = { id, name, status, offer, region, endpoint, created_at, error };
  return Object.fromEntries(Object.entries(row).map(([field, value]) => [field, value ?? null]));
}

/** What a provider's error means, and what to do. */
function toFatal(context: Context, error: ProviderError): Fatal {
  const { url, name, key_file: file } = context;
  const cause = { cause: error };
  const unknown = error.mayHaveHappened
    ? ' It is unknown whether this was done: see `berth instances ls`.'
    : '';
  switch (error.problem) {
    case 'unreachable':
    case 'timeout':
      return unreachable(context, error.cause as Error, unknown);
    case 'unauthorized':
      return new Fatal(
        `${url} does not accept the key of the context ${name} (${file})${error.said === null ? '' : `: ${error.said}`} Write a valid key of the account into this file.`,
        cause,
      );
    case 'invalid':
      return new Fatal(
        `${url} (context ${name}) does not answer as the contract says (${error.message}): check the address with \`berth context show ${name}\`.${unknown}`,
        cause,
      );
    case 'limited':
      return new Fatal(`${url} (context ${name}) limits requests: try again in a minute.`, cause);
    default:
      return new Fatal(`${inFlags(error.said ?? error.message)}${unknown}`, cause);
  }
}
