import { expect, it } from 'vitest';
import { clientOf } from '../http/wire/client-address.ts';
import { createRouter } from './router.ts';

/** Answers with the network that a server behind one proxy counts a request for. */
const server = {
  fetch: ({ headers }: Request) =>
    new Response(clientOf(undefined, headers.get('x-forwarded-for') ?? undefined, 1).network),
};

it.each(['/api/gpu-offers', '/providers/a/v1/auth/token'])(
  'counts %s for the connection’s address, separately for each account',
  async (path) => {
    const ownershipOf = async (_: string, { headers }: Request) =>
      headers.has('authorization') ? { account: headers.get('authorization') ?? '' } : {};
    const router = createRouter({ providers: new Map([['a', { app: server }]]), layers: [], ownershipOf });
    router.serveMarketplace(server);
    const countedFor = async (remoteAddress?: string, account?: string) => {
      const headers = { 'x-forwarded-for': '9.9.9.9', ...(account && { authorization: account }) };
      const request = new Request(`http://sandbox.test${path}`, { headers });
      return (
        await router.route(request, remoteAddress === undefined ? undefined : { remoteAddress })
      ).text();
    };
    const clients = [
      [],
      ['127.0.0.1'],
      ['127.0.0.2'],
      ['127.0.0.1', 'x'],
      ['127.0.0.1', 'y'],
      [undefined, 'x'],
    ] as const;
    const counted = await Promise.all(clients.map((client) => countedFor(...client)));
    expect(new Set(counted).size).toBe(clients.length);
    expect(await Promise.all(clients.map((client) => countedFor(...client)))).toEqual(counted);
    expect(await countedFor('::ffff:127.0.0.1')).toBe(counted[1]);
  },
);
