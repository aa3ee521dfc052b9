import { describe, expect, it } from 'vitest';
import { OwnInstances } from './own-instances.ts';

const others = Array.from({ length: 5000 }, (_, index) => ({
  id: `s-${index}`,
  name: `machine-${index}`,
  labels: 'x'.repeat(300),
}));

describe('a list of thousands of instances', () => {
  it('is kept with the first of the others, and with those of the run wherever they stand', () => {
    const own = new OwnInstances((name) => name.startsWith('berth-conf-run-'));
    own.add('{"id":"i-1"}');
    own.add('not JSON');
    const instances = [...others, { id: 'i-1' }, { id: 'i-2', name: 'berth-conf-run-002-copy' }, null];
    const { body, leftOut } = own.trimmed(JSON.stringify({ instances, next: null }));
    const kept = JSON.parse(body);
    expect(kept.next).toBeNull();
    expect(kept.instances.length + leftOut).toBe(instances.length);
    expect(kept.instances.slice(-2).map(({ id }: { id: string }) => id)).toEqual(['i-1', 'i-2']);
    expect(body.length).toBeLessThan(200_000);
  });

  it('is kept with those that a read asks for wherever they stand, but no more than it asks for', () => {
    const body = JSON.stringify({ instances: [...others, { id: 'a' }, { id: 'b' }, { id: 'c' }] });
    const keeps = { isKept: ({ id }: { id?: unknown }) => ['a', 'b', 'c'].includes(String(id)), atMost: 2 };
    const kept = JSON.parse(
      new OwnInstances((name) => name.startsWith('berth-conf-')).trimmed(body, { keeps }).body,
    ).instances;
    expect(kept.slice(-2)).toEqual([{ id: 'a' }, { id: 'b' }]);
    const alone = new OwnInstances((name) => name.startsWith('berth-conf-')).trimmed(body, {
      keeps,
      isNearMemoryLimit: true,
    });
    expect(JSON.parse(alone.body).instances).toEqual([{ id: 'a' }, { id: 'b' }]);
  });

  it.each([
    ['short', JSON.stringify({ instances: [{ id: 'a' }] })],
    ['refused and short', '{"error":{}}'],
  ])('is kept as it is where it is %s', (_what, body) => {
    expect(new OwnInstances((name) => name.startsWith('berth-conf-')).trimmed(body)).toEqual({
      body,
      leftOut: 0,
    });
  });

  it.each([
    ['no list', JSON.stringify({ instances: 'x'.repeat(2_000_000) }), false],
    ['no JSON', `{}${' '.repeat(2_000_000)}x`, false],
    ['a refusal', JSON.stringify({ error: 'x'.repeat(100_000) }), true],
  ])('is kept with its beginning only where it is %s', (_what, body, isRefused) => {
    const { body: kept, leftOut } = new OwnInstances((name) => name.startsWith('berth-conf-')).trimmed(body, {
      isRefused,
    });
    expect(kept).toBe(`${body.slice(0, 65_536)}…`);
    expect(leftOut).toBe(body.length - 65_536);
  });

  it('is kept with those of the run alone once much is kept', () => {
    const body = JSON.stringify({ instances: [...others, { id: 'i', name: 'berth-conf-1' }], more: 'x' });
    const kept = new OwnInstances((name) => name.startsWith('berth-conf-')).trimmed(body, {
      isNearMemoryLimit: true,
    });
    expect(kept).toEqual({ body: '{"instances":[{"id":"i","name":"berth-conf-1"}]}', leftOut: 5000 });
  });

  it('is bounded where each of the others is long', () => {
    const instances = Array.from({ length: 300 }, () => ({ name: 'y'.repeat(100_000) }));
    const { body } = new OwnInstances((name) => name.startsWith('berth-conf-')).trimmed(
      JSON.stringify({ instances }),
    );
    expect(body.length).toBeLessThan(1_100_000);
  });
});
