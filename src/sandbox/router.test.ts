import { expect, it } from 'vitest';
import { clientOf } from '../http/wire/client-address.ts';
import { createRouter } from './router.ts';

/** Answers with the network that a server behind one proxy counts a request for. */
const server = {
  fetch: ({ headers }: Request) =>
    new Response(clientOf(undefined, headers.get('x-forwarded-for') ?? undefined, 1).network),
};

it.each(['/api/gpu-offers', '/providers/a/v1/auth/token'])(
  'counts %s for the address of the connection',
  async (path) => {
    const accountOf = async () => undefined;
    const router = createRouter({ providers: new Map([['a', { app: server }]]), layers: [], accountOf });
    router.serveMarketplace(server);
    const countedFor = async (remoteAddress?: string) => {
      const request = new Request(`http://sandbox.test${path}`, {
        headers: { 'x-forwarded-for': '9.9.9.9' },
      });
      return (
        await router.route(request, remoteAddress === undefined ? undefined : { remoteAddress })
      ).text();
    };
    const counted = await Promise.all([undefined, '127.0.0.1', '127.0.0.2'].map(countedFor));
    expect(new Set(counted).size).toBe(3);
    expect(await countedFor('::ffff:127.0.0.1')).toBe(counted[1]);
  },
);
