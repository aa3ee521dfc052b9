import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NotReached } from '../../ports/errors.ts';
import { DEFAULT_CALL_MS } from '../../work/lease-time.ts';
import { IncusApi } from './api.ts';
import type { IncusClient, Reply } from './client.ts';
import { IncusRefusal } from './errors.ts';
import { InstanceReader } from './instances.ts';

/** Three members with a machine on each. The member `lost` no longer answers Incus. */
function cluster() {
  const places: Record<string, string> = { a: 'n1', b: 'n2', c: 'n3' };
  const state = {
    lost: '',
    isNoticed: false,
    projects: ['default'],
    asked: [] as string[],
    refusal: 0,
    ending: '',
  };
  const shown = (name: string) => ({
    name,
    type: 'container',
    status_code: (state.isNoticed && places[name] === state.lost) || name === state.ending ? 112 : 103,
    created_at: '2026-11-23T01:00:00Z',
    location: places[name],
    config: {},
    devices: {},
    expanded_config: {},
    expanded_devices: {},
  });
  const shownAlone = (name: string, query: Record<string, string>) => {
    if (name === state.ending && query['recursion'] !== undefined)
      throw new IncusRefusal(500, 'Invalid PID -1', 'GET');
    return shown(name);
  };
  const silence = (withinMs = DEFAULT_CALL_MS - 1_000): Promise<never> =>
    new Promise((_, reject) => setTimeout(() => reject(new NotReached('no answer')), withinMs));
  const get = async (
    path: string,
    query: Record<string, string> = {},
    withinMs?: number,
  ): Promise<unknown> => {
    state.asked.push(path);
    if (state.refusal > 0) throw new IncusRefusal(state.refusal, 'no', 'GET');
    if (path.startsWith('/1.0/projects/')) {
      if (state.projects.includes(path.split('/')[3] ?? '')) return {};
      throw new IncusRefusal(404, 'Project not found', 'GET');
    }
    const name = path.split('/')[3];
    const isWaitedFor = state.lost !== '' && !state.isNoticed;
    if (name !== undefined)
      return isWaitedFor && places[name] === state.lost ? silence(withinMs) : shownAlone(name, query);
    if (query['recursion'] === undefined) return Object.keys(places).map((key) => `/1.0/instances/${key}`);
    return isWaitedFor ? silence(withinMs) : Object.keys(places).map(shown);
  };
  const client = {
    project: 'default',
    get: async (...args: Parameters<typeof get>): Promise<Reply> => ({
      metadata: await get(...args),
      etag: undefined,
      operation: undefined,
    }),
  };
  const api = new IncusApi(client as unknown as IncusClient);
  return { state, places, client, api, reader: new InstanceReader(api) };
}

describe('the instances of a cluster', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('are all Berth’s if no other project has one, without waiting for members', async () => {
    const { state, api } = cluster();
    state.lost = 'n3';
    const others = api.instancesOfOthers();
    others.catch(() => undefined);
    await vi.advanceTimersByTimeAsync(7_000);
    expect(await others).toEqual([]);
  });

  it('are listed while Incus still waits for a member without power, except those on it', async () => {
    const { state, reader } = cluster();
    await reader.read({ state: true });
    state.lost = 'n3';
    const reading = reader.read({ state: true });
    await vi.advanceTimersByTimeAsync(4_500);
    const { instances, names, silent } = await reading;
    expect(instances.map(({ name }) => name).sort()).toEqual(['a', 'b']);
    expect([names, [...silent]]).toEqual([['a', 'b', 'c'], ['n3']]);
  });

  it('name the member that Incus reports offline', async () => {
    const { state, reader } = cluster();
    state.lost = 'n2';
    state.isNoticed = true;
    const { instances, silent } = await reader.read({ state: true });
    expect([instances.length, [...silent]]).toEqual([3, ['n2']]);
    expect(state.asked).toEqual(['/1.0/instances', '/1.0/instances/b']);
  });

  it('silence no member while a container on it is ending, which a list shows as Error [incus-ending]', async () => {
    const { state, reader } = cluster();
    state.ending = 'b';
    const { instances, silent } = await reader.read({ state: true });
    expect(instances.map((one) => one.status_code)).toEqual([103, 107, 103]);
    expect([...silent]).toEqual([]);
  });

  it('are unknown if it is unclear which member is silent', async () => {
    const { state, reader } = cluster();
    state.lost = 'n3';
    const reading = expect(reader.read({ state: true })).rejects.toThrow(NotReached);
    await vi.advanceTimersByTimeAsync(20_000);
    await reading;
  });

  it('send one request to a silent member for all instances on it', async () => {
    const { state, places, reader } = cluster();
    for (let index = 0; index < 50; index++) places[`more-${index}`] = 'n3';
    await reader.read({ state: true });
    state.lost = 'n3';
    state.asked = [];
    const reading = reader.read({ state: true });
    await vi.advanceTimersByTimeAsync(4_500);
    expect((await reading).names).toHaveLength(53);
    expect(state.asked.length).toBeLessThan(10);
  });

  it('are not requested one by one if Incus refuses to list them', async () => {
    const { state, reader } = cluster();
    state.refusal = 403;
    await expect(reader.read({ state: true })).rejects.toThrow(IncusRefusal);
    expect(state.asked).toEqual(['/1.0/instances']);
  });

  it('are never empty because the project name is wrong: Incus lists an unknown project as empty [incus-no-such-project]', async () => {
    const { state, places, reader } = cluster();
    for (const name of Object.keys(places)) delete places[name];
    expect(await reader.read({ state: true })).toMatchObject({ instances: [] });
    state.projects = ['defualt'];
    await expect(reader.read({ state: true })).rejects.toThrow('Incus has no project default');
    await expect(reader.read({ state: false })).rejects.toThrow('Incus has no project default');
  });
});
