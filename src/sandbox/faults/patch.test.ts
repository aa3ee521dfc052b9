import { describe, expect, it } from 'vitest';
import { benchOf, startBench } from './bench.fixture.ts';
import { patched } from './patch.ts';

describe('answer-patch', () => {
  it('changes one resource in a read and in lists, by a merge patch', async () => {
    await using sandbox = await startBench();
    const { arm, ask, make, read } = await benchOf(sandbox);
    const [id, other] = [await make('one'), await make('other')];
    await arm('answer-patch', {
      instance: id,
      times: 'sticky',
      merge: { region: 'dc-0042', public_ip: null, price_per_hour: -1 },
    });
    const changed = { id, region: 'dc-0042', price_per_hour: -1 };
    expect((await read(id)).body).toMatchObject(changed);
    expect((await read(id)).body).not.toHaveProperty('public_ip');
    expect((await ask('GET', '/instances')).body.instances).toMatchObject([
      changed,
      { id: other, region: 'us-phoenix' },
    ]);
    expect((await read(other)).body).toMatchObject({ id: other, region: 'us-phoenix' });
  });

  it('changes a whole body, also to another root', async () => {
    await using sandbox = await startBench();
    const { arm, ask } = await benchOf(sandbox);
    await arm('answer-patch', { route: 'GET /instances', merge: [] });
    expect((await ask('GET', '/instances')).text).toBe('[]');
  });

  it('sets the status, headers and the bytes of an answer', async () => {
    await using sandbox = await startBench();
    const { arm, order, ask } = await benchOf(sandbox);
    await arm('answer-patch', { route: 'POST /instances', status: 200, merge: { error: 'it failed' } });
    expect(await order('x')).toMatchObject({ status: 200, body: { error: 'it failed' } });
    await arm('answer-patch', { body: 'nonsense', headers: { 'x-request-id': null, server: 'edge' } });
    const reply = await ask('GET', '/instances');
    expect(reply).toMatchObject({ status: 200, text: 'nonsense' });
    expect([reply.headers.has('x-request-id'), reply.headers.get('server')]).toEqual([false, 'edge']);
    await arm('answer-patch', { status: 204 });
    expect(await ask('GET', '/instances')).toMatchObject({ status: 204, text: '' });
  });

  it('answers 500 and says why if it does not fit, and changes no prototype', async () => {
    const answer = () => Response.json({ instances: [] });
    const reasonOf = async (patch: Parameters<typeof patched>[1], of = answer()) => {
      const response = await patched(of, patch);
      const { error } = (await response.json()) as { error: { message: string } };
      return [response.status, error.message];
    };
    expect(await reasonOf({ merge: {} }, new Response('<html>'))).toEqual([
      500,
      expect.stringContaining('JSON'),
    ]);
    await patched(answer(), { merge: JSON.parse('{"__proto__":{"polluted":1}}') });
    expect({}).not.toHaveProperty('polluted');
  });

  it('refuses a patch that is none, by name', async () => {
    await using sandbox = await startBench();
    const { arm } = await benchOf(sandbox);
    await expect(arm('answer-patch', { patch: [] } as never)).rejects.toThrow(/patch/);
    await expect(arm('answer-patch', { status: 99 })).rejects.toThrow(/status/);
  });
});
