import type { z } from '@hono/zod-openapi';
import type { ControlDeps } from './deps.ts';
import type { dumpSchema } from './schemas.ts';

type Dump = z.infer<typeof dumpSchema>;
type Rows = Record<string, unknown>[];

/** Returns the current state. No time passes. */
export async function dump({ sandbox, scenarios, keys }: ControlDeps): Promise<Dump> {
  const providers: Dump['providers'] = {};
  for (const { name, platform } of sandbox.providers.values()) {
    const { machines, volumes } = platform;
    const instances: Rows = [];
    for (const { account, provider } of keys()) {
      if (provider !== name) continue;
      const { body } = await scenarios.send({ provider, account, method: 'GET', path: '/v1/instances' });
      const own = (body as { instances: Rows }).instances;
      instances.push(...own.map((instance) => ({ account, ...instance })));
    }
    providers[name] = {
      machines: machines.all() as unknown as Rows,
      volumes: volumes.all() as unknown as Rows,
      attachments: volumes.attachments() as unknown as Rows,
      instances,
    };
  }
  return { seed: sandbox.seed, now: new Date(sandbox.clock.now()).toISOString(), providers };
}
