import { createHash, timingSafeEqual } from 'node:crypto';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { Call, PlatformDriver } from '../../../orchestrator/model/platform-driver.ts';
import { type CallName, calls, requestSchema, UNAUTHORIZED } from './protocol.ts';

const MAX_REQUEST_BYTES = 8 * 1024 * 1024;

export interface RemoteServerOptions {
  simulator: PlatformDriver;
  /** The token that every caller must send. If undefined, none is required. */
  token: string | undefined;
}

/** The simulator as an HTTP application: `POST /driver/<call>` is the driver's port. */
export function createRemoteServer({ simulator, token }: RemoteServerOptions): Hono {
  const app = new Hono();
  app.use(bodyLimit({ maxSize: MAX_REQUEST_BYTES }));
  app.use(async (context, next) => {
    if (token !== undefined && !isSame(context.req.header('Authorization') ?? '', `Bearer ${token}`))
      return context.json({ error: 'BERTH_SIMULATOR_TOKEN is missing or wrong' }, UNAUTHORIZED);
    // A web page needs a CORS preflight to send this type, and none is ever granted.
    if (context.req.method !== 'GET' && context.req.header('Content-Type') !== 'application/json')
      return context.json({ error: 'expected JSON' }, 415);
    return next();
  });
  for (const name of Object.keys(calls) as CallName[])
    app.post(`/driver/${name}`, async (context) => {
      const { arguments: given, ...limits } = requestSchema.parse(await context.req.json());
      // A caller that gives up closes its connection.
      const { signal } = context.req.raw;
      return context.json((await answer(simulator, name, given, { ...limits, signal })) ?? {});
    });
  app.onError((error, context) => context.json({ error: error.message }, 500));
  return app;
}

function answer(driver: PlatformDriver, name: CallName, given: readonly unknown[], limits: Call): unknown {
  const args: readonly unknown[] = calls[name].parse(given);
  const [method = '', part] = name.split('.').reverse();
  const target = part === undefined ? driver : driver[part as 'volumes' | 'writer'];
  const call = (target as Record<string, (...args: unknown[]) => unknown> | undefined)?.[method];
  if (call === undefined) throw new TypeError(`the simulator has no ${name}`);
  return call.call(target, ...args, limits);
}

function isSame(given: string, expected: string): boolean {
  const [one, other] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}
