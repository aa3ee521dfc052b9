import { expect } from 'vitest';
import { benchOf, SSH_KEY } from './bench.fixture.ts';
import type { FaultName } from './catalog/catalog.ts';
import {
  failsHandshake,
  otherSideClosed,
  type Proof,
  readsOnce,
  refusesOnce,
  reset,
} from './proofs.fixture.ts';

/** The effect of each fault of a request, as seen through the HTTP API only. */
export const httpProofs = {
  'certificate-expired': failsHandshake('CERT_HAS_EXPIRED'),
  'certificate-wrong-name': failsHandshake('ERR_TLS_CERT_ALTNAME_INVALID'),
  'handshake-reset': failsHandshake('ECONNRESET'),
  latency:
    (name) =>
    async ({ arm, ask, sandbox: { clock } }) => {
      await arm(name, { ms: 3_000 } as object);
      const before = clock.now();
      expect((await ask('GET', '/configurations')).status).toBe(200);
      expect(clock.now() - before).toBe(3_000);
    },
  'slow-request':
    (name) =>
    async ({ arm, order, sandbox: { clock } }) => {
      await arm(name);
      const before = clock.now();
      const { body } = await order('late');
      expect(Date.parse(body.created_at) - before).toBe(15_000);
    },
  'no-answer':
    (name) =>
    async ({ arm, send, ask }) => {
      await arm(name, { route: 'POST /instances' } as object);
      const giveUp = new AbortController();
      const body = {
        configuration_id: 'd-cpu-4x16',
        region: 'us-phoenix',
        image: 'ubuntu-24.04',
        ssh_keys: [],
        name: 'x',
      };
      const answer = send('POST', '/instances', { ...body, ssh_keys: [SSH_KEY] }, giveUp.signal);
      setImmediate(() => giveUp.abort(new Error('gave up')));
      await expect(answer).rejects.toThrow('gave up');
      expect((await ask('GET', '/instances')).body.instances).toHaveLength(1);
    },
  'connection-refused':
    (name) =>
    async ({ arm, order, ask }) => {
      await arm(name);
      await expect(order('x')).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
      expect((await ask('GET', '/instances')).body.instances).toEqual([]);
    },
  'request-lost':
    (name) =>
    async ({ arm, order, ask }) => {
      await arm(name);
      await expect(order('x')).rejects.toMatchObject(reset);
      expect((await ask('GET', '/instances')).body.instances).toEqual([]);
    },
  'answer-lost':
    (name) =>
    async ({ arm, order, ask }) => {
      await arm(name);
      await expect(order('lost')).rejects.toMatchObject(reset);
      expect((await ask('GET', '/instances')).body.instances).toMatchObject([{ name: 'lost' }]);
    },
  'carried-out-late':
    (name) =>
    async ({ arm, order, ask, pass }) => {
      await arm(name);
      await expect(order('late')).rejects.toMatchObject(reset);
      expect((await ask('GET', '/instances')).body.instances).toEqual([]);
      await pass(21);
      expect((await ask('GET', '/instances')).body.instances).toMatchObject([{ name: 'late' }]);
    },
  'delivered-twice':
    (name) =>
    async ({ arm, order, ask }) => {
      await arm(name);
      const { body } = await order('twice');
      const { instances } = (await ask('GET', '/instances')).body;
      expect(instances).toHaveLength(2);
      expect(instances.map(({ id }: { id: string }) => id)).toContain(body.id);
    },
  'half-body-reset':
    (name) =>
    async ({ arm, send }) => {
      await arm(name);
      const response = await send('GET', '/configurations');
      const promised = Number(response.headers.get('content-length'));
      let came = 0;
      const reading = (async () => {
        for await (const chunk of response.body ?? []) came += chunk.length;
      })();
      await expect(reading).rejects.toMatchObject(reset);
      expect(came).toBe(Math.floor(promised / 2));
    },
  'half-body-silence':
    (name) =>
    async ({ arm, send, sandbox: { clock } }) => {
      await arm(name);
      const response = await send('GET', '/configurations');
      const reader = response.body?.getReader();
      expect((await reader?.read())?.value?.length).toBe(
        Math.floor(Number(response.headers.get('content-length')) / 2),
      );
      let isMore = false;
      void reader?.read().then(() => {
        isMore = true;
      });
      await clock.advance(3_600_000);
      expect(isMore).toBe(false);
      await reader?.cancel();
    },
  'slow-body':
    (name) =>
    async ({ arm, ask, sandbox: { clock } }) => {
      await arm(name);
      const before = clock.now();
      const { text, status } = await ask('GET', '/instances');
      expect([status, text]).toEqual([200, '{"instances":[]}']);
      expect(clock.now() - before).toBe((text.length - 1) * 1_000);
    },
  'slow-connection':
    (name) =>
    async ({ arm, send, ask, order, sandbox: { clock, faults } }) => {
      const armed = await arm(name, { latency_ms: 250, bytes_per_s: 200, times: 1 } as object);
      const take = async (request: () => Promise<unknown>): Promise<number> => {
        const before = clock.now();
        await request();
        return clock.now() - before;
      };
      // 16 bytes: 80 ms.
      expect(await take(() => ask('GET', '/instances'))).toBe(250 + 80);
      const response = await send('GET', '/configurations');
      const bytes = Number(response.headers.get('content-length'));
      expect(await take(() => response.text())).toBe((Math.ceil(bytes / 20) - 1) * 100);
      // Meanwhile another connection is opened, which is not slow.
      const [slow, quick] = await Promise.all(
        [1, 2].map(() => take(async () => (await send('GET', '/instances')).status)),
      );
      expect([slow, quick]).toEqual([250 + 80, 0]);
      expect(armed).toMatchObject({ hits: 1, isOver: false });
      const sent = await take(() => order('sent slowly'));
      expect(sent).toBeGreaterThan(250 + 5 * 200);
      faults.clear();
      expect(await take(() => ask('GET', '/instances'))).toBe(0);
    },
  'half-closed-before-answer':
    (name) =>
    async ({ arm, order, ask }) => {
      await arm(name);
      await expect(order('done')).rejects.toMatchObject(otherSideClosed);
      expect((await ask('GET', '/instances')).body.instances).toMatchObject([{ name: 'done' }]);
      await arm(name, { done: false } as object);
      await expect(order('not done')).rejects.toMatchObject(otherSideClosed);
      expect((await ask('GET', '/instances')).body.instances).toHaveLength(1);
    },
  'half-closed-after-answer':
    (name) =>
    async ({ arm, order, ask }) => {
      await arm(name);
      expect((await ask('GET', '/instances')).body).toEqual({ instances: [] });
      await expect(order('on the same connection')).rejects.toMatchObject(otherSideClosed);
      expect((await ask('GET', '/instances')).body.instances).toEqual([]);
      expect((await order('on another one')).status).toBe(201);
    },
  'dead-connection':
    (name) =>
    async ({ arm, send, order, ask, sandbox: { clock } }) => {
      await arm(name, { route: 'POST /instances' } as object);
      expect((await ask('GET', '/instances')).body).toEqual({ instances: [] });
      expect((await order('answered')).status).toBe(201);
      const before = clock.now();
      await expect(send('GET', '/instances', undefined, clock.timeout(5_000))).rejects.toMatchObject({
        name: 'TimeoutError',
      });
      expect(clock.now() - before).toBe(5_000);
      expect((await ask('GET', '/instances')).body.instances).toMatchObject([{ name: 'answered' }]);
    },
  'truncated-json': (name) =>
    readsOnce(name, ({ status, body, text, headers }) => {
      expect([status, body]).toEqual([200, undefined]);
      expect(text).toMatch(/^\{"id":"[^}]+$/);
      expect([null, String(text.length)]).toContain(headers.get('content-length'));
    }),
  'trailing-garbage': (name) =>
    readsOnce(name, ({ body, text }) => {
      expect(body).toBeUndefined();
      expect(text).toMatch(/\}\n<!--/);
    }),
  'empty-body': (name) => readsOnce(name, ({ status, text }) => expect([status, text]).toEqual([200, ''])),
  'wrong-content-type': (name) =>
    readsOnce(name, ({ headers, body }) => {
      expect(headers.get('content-type')).toBe('text/plain');
      expect(body.status).toBe('ONLINE');
    }),
  'unknown-status': (name) => readsOnce(name, ({ body }) => expect(body.status).toBe('REBALANCING')),
  flapping:
    (name) =>
    async ({ make, arm, read }) => {
      const id = await make();
      await arm(name, { instance: id });
      const seen: string[] = [];
      for (let poll = 0; poll < 4; poll++) seen.push((await read(id)).body.status);
      expect(seen).toEqual(['OFFLINE', 'ONLINE', 'OFFLINE', 'ONLINE']);
    },
  'wrong-status': (name) => readsOnce(name, ({ body }) => expect(body.status).toBe('ERROR')),
  'early-online':
    (name) =>
    async ({ arm, order, read }) => {
      await arm(name);
      const { body } = await order('early');
      const shown = await read(body.id);
      expect(shown.body.status).toBe('ONLINE');
      expect(shown.body).not.toHaveProperty('public_ip');
    },
  'no-address': (name) =>
    readsOnce(name, ({ body }) => {
      expect(body.status).toBe('ONLINE');
      expect(body).not.toHaveProperty('public_ip');
      expect(body).not.toHaveProperty('ssh_port');
    }),
  'price-as-text': (name) => readsOnce(name, ({ body }) => expect(body.price_per_hour).toBe('0.11')),
  'price-changes':
    (name) =>
    async ({ make, arm, read, ask, sandbox }) => {
      const id = await make();
      await arm(name, { factor: 3 } as object);
      expect((await read(id)).body.price_per_hour).toBeCloseTo(0.33);
      const { configurations } = (await ask('GET', '/configurations')).body;
      expect(configurations[0].price_per_hour).toBeCloseTo(0.33);
      const spot = await benchOf(sandbox, 'b');
      await spot.arm(name, { factor: 3 } as object);
      const offers = (await spot.ask('GET', '/availability')).body.configurations;
      const cpu = offers.find((offer: { id: string }) => offer.id === 'b-cpu-4x16-spot');
      expect(cpu).toMatchObject({ spot_price_per_hour: expect.closeTo(0.09) });
    },
  'negative-price':
    (name) =>
    async ({ arm, ask }) => {
      await arm(name);
      expect((await ask('GET', '/configurations')).body.configurations[0].price_per_hour).toBe(-1);
    },
  'missing-field': (name) =>
    readsOnce(name, ({ body }) => {
      expect(body).not.toHaveProperty('status');
      expect(body).toHaveProperty('id');
    }),
  'extra-fields':
    (name) =>
    async ({ make, arm, read }) => {
      const id = await make();
      await arm(name);
      expect((await read(id)).body).toMatchObject({ status: 'ONLINE', x_rack: 'r-17' });
    },
  'clock-skew':
    (name) =>
    async ({ make, arm, read }) => {
      const id = await make();
      const { created_at: before } = (await read(id)).body;
      await arm(name, { s: -60 } as object);
      expect(Date.parse((await read(id)).body.created_at)).toBe(Date.parse(before) - 60_000);
    },
  'status-late':
    (name) =>
    async ({ order, arm, read, pass }) => {
      const { body } = await order('late');
      await arm(name, { s: 30, instance: body.id } as object);
      await read(body.id);
      const seen: string[] = [];
      for (let poll = 0; poll < 5; poll++) {
        await pass(10);
        seen.push((await read(body.id)).body.status);
      }
      expect(seen).toEqual(['PROVISIONING', 'PROVISIONING', 'PROVISIONING', 'ONLINE', 'ONLINE']);
    },
  'empty-list':
    (name) =>
    async ({ make, arm, ask }) => {
      await make();
      await arm(name);
      expect((await ask('GET', '/instances')).body).toEqual({ instances: [] });
      expect((await ask('GET', '/instances')).body.instances).toHaveLength(1);
    },
  'partial-list':
    (name) =>
    async ({ make, order, arm, ask }) => {
      const id = await make();
      const { body: other } = await order('two');
      await arm(name, { instance: id });
      expect((await ask('GET', '/instances')).body.instances).toMatchObject([{ id: other.id }]);
    },
  'list-lags':
    (name) =>
    async ({ make, order, arm, ask, pass }) => {
      const id = await make();
      await pass(30);
      await order('young');
      await arm(name);
      expect((await ask('GET', '/instances')).body.instances).toMatchObject([{ id }]);
    },
  'listed-twice':
    (name) =>
    async ({ make, arm, ask }) => {
      const id = await make();
      await arm(name);
      expect((await ask('GET', '/instances')).body.instances).toMatchObject([{ id }, { id }]);
    },
  'foreign-instance':
    (name) =>
    async ({ make, arm, ask }) => {
      const id = await make();
      await arm(name);
      expect((await ask('GET', '/instances')).body.instances).toMatchObject([
        { id },
        { id: 'ins-of-somebody-else' },
      ]);
    },
  'sold-out':
    (name) =>
    async ({ arm, ask, order, sandbox }) => {
      await arm(name, { configuration: 'd-cpu-4x16' } as object);
      const { configurations } = (await ask('GET', '/configurations')).body;
      expect(configurations[0]).toMatchObject({ id: 'd-cpu-4x16', available: false });
      expect((await ask('GET', '/availability')).text).not.toContain('d-cpu-4x16');
      expect(await order('x')).toMatchObject({
        status: 409,
        body: { error: { code: 'capacity_unavailable' } },
      });
      sandbox.faults.clear();
      expect((await order('x')).status).toBe(201);
    },
  'offer-vanishes':
    (name) =>
    async ({ arm, ask }) => {
      const before = (await ask('GET', '/configurations')).body.configurations;
      await arm(name);
      expect((await ask('GET', '/configurations')).body.configurations).toEqual(before.slice(1));
    },
  'sold-out-left-out':
    (name) =>
    async ({ arm, ask, sandbox }) => {
      const before = (await ask('GET', '/configurations')).body.configurations;
      await arm(name);
      expect((await ask('GET', '/configurations')).body.configurations).toEqual(before);
      await sandbox.faults.arm('sold-out', { configuration: before[1].id });
      expect((await ask('GET', '/configurations')).body.configurations).toEqual(before.toSpliced(1, 1));
    },
  'available-without-room':
    (name) =>
    async ({ arm, ask, sandbox }) => {
      await sandbox.faults.arm('sold-out', { configuration: 'd-cpu-4x16' });
      expect((await ask('GET', '/availability')).text).not.toContain('d-cpu-4x16');
      await arm(name);
      expect((await ask('GET', '/availability')).body.configurations[0].id).toBe('d-cpu-4x16');
    },
  'created-with-200':
    (name) =>
    async ({ arm, order }) => {
      await arm(name);
      expect(await order('x')).toMatchObject({ status: 200, body: { status: 'PROVISIONING' } });
    },
  'http-401': refusesOnce(401, { body: { error: { code: 'unauthorized' } } }),
  'http-403': refusesOnce(403),
  'false-404': (name) =>
    readsOnce(name, ({ status, body }) => {
      expect([status, body.error.code]).toEqual([404, 'not_found']);
    }),
  'capacity-gone': refusesOnce(409, { body: { error: { code: 'capacity_unavailable' } } }),
  'delete-locked':
    (name) =>
    async ({ make, arm, ask, read }) => {
      const id = await make();
      await arm(name, { times: 2 });
      for (let round = 0; round < 2; round++)
        expect((await ask('DELETE', `/instances/${id}`)).status).toBe(409);
      expect((await read(id)).body.status).toBe('ONLINE');
      expect((await ask('DELETE', `/instances/${id}`)).body.status).toBe('DESTROYING');
    },
  'http-429':
    (name) =>
    async ({ arm, ask }) => {
      await arm(name, { retry_after_s: 7 } as object);
      const { status, headers } = await ask('GET', '/instances');
      expect([status, headers.get('retry-after')]).toEqual([429, '7']);
    },
  'answer-patch': (name) =>
    readsOnce(name, ({ body }) => expect(body).toMatchObject({ region: 'internal-7' }), {
      merge: { region: 'internal-7' },
    }),
  'http-500': refusesOnce(500, { body: { error: { code: 'internal' } } }),
  'http-503': refusesOnce(503, { body: { error: { code: 'unavailable' } } }),
  'http-502': refusesOnce(502, { text: expect.stringContaining('<title>502 Bad Gateway</title>') }),
  'http-504':
    (name) =>
    async ({ arm, order, ask }) => {
      await arm(name);
      expect(await order('done')).toMatchObject({ status: 504, text: expect.stringContaining('<html>') });
      expect((await ask('GET', '/instances')).body.instances).toMatchObject([{ name: 'done' }]);
    },
  'html-page': refusesOnce(200, { text: expect.stringContaining('<h1>Scheduled maintenance</h1>') }),
  redirect:
    (name) =>
    async ({ arm, ask }) => {
      await arm(name);
      const { status, headers } = await ask('GET', '/instances');
      expect([status, headers.get('location')]).toEqual([302, 'https://login.example/']);
    },
  'error-without-envelope': refusesOnce(500, { body: { statusCode: 500 } }),
  'delete-ignored':
    (name) =>
    async ({ make, arm, ask, read, pass }) => {
      const id = await make();
      await arm(name);
      expect(await ask('DELETE', `/instances/${id}`)).toMatchObject({
        status: 200,
        body: { status: 'DESTROYING' },
      });
      await pass(60);
      expect((await read(id)).body.status).toBe('ONLINE');
    },
} satisfies Partial<Record<FaultName, (name: FaultName) => Proof>>;
