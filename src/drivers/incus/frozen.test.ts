import { expect, it } from 'vitest';
import { aMachine, anIncus, REF } from './fake-incus.fixture.ts';

/** A machine that has run, with this status code of Incus. */
function withCode(code: number) {
  const incus = anIncus();
  incus.instances.set(REF, aMachine({ code }));
  return incus;
}

const PAUSED = { power: 'paused', detail: expect.stringContaining('frozen') };

it.each([
  ['freezing', 109],
  ['frozen', 110],
])(
  'a machine that is %s is paused, with a remedy, in list and in get [incus-frozen]',
  async (_state, code) => {
    const { machines } = withCode(code);
    expect(await machines.get(REF)).toMatchObject({ answer: 'observed', value: PAUSED });
    expect(await machines.list()).toMatchObject({ items: [PAUSED] });
  },
);

it('a start resumes a frozen machine', async () => {
  const { machines, sent } = withCode(110);
  expect(await machines.start(REF, null)).toMatchObject({ outcome: 'pending' });
  expect(sent).toMatchObject([{ body: { action: 'unfreeze' } }]);
});

it('a stop forces a frozen machine off, because it cannot shut down', async () => {
  const { machines, sent } = withCode(110);
  expect(await machines.stop(REF, null)).toMatchObject({ outcome: 'pending' });
  expect(sent).toMatchObject([{ body: { action: 'stop', force: true, timeout: -1 } }]);
});

it('a thawed machine, and one that reports ready, are running', async () => {
  for (const code of [103, 111, 113])
    expect(await withCode(code).machines.get(REF)).toMatchObject({ value: { power: 'running' } });
});
