import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Diagnosis } from '../../ports/diagnosis.ts';
import { exec } from './driver.ts';
import {
  GREETING,
  infoAnswer,
  isRunning,
  LISTEN,
  prepareProgram,
  say,
  setting,
  TELL_PID,
} from './program.fixture.ts';

describe('a program that berth doctor checks', () => {
  const diagnosed = async (script: string, isEnded = true): Promise<Diagnosis[]> => {
    await using program = prepareProgram(script);
    const { place, clock } = program;
    const options = exec.configSchema.parse({
      driver: 'exec',
      command: ['sh', '-c', script],
      environment: ['PLACE'],
    });
    const findings = exec.diagnose?.(options, setting({ env: { ...process.env, PLACE: place }, clock }));
    const received: Diagnosis[] = [];
    const all = (async () => {
      for await (const finding of findings ?? []) received.push(finding);
      return received;
    })();
    return isEnded ? all : clock.advanceUntilSettled(all, 1_000);
  };

  it('reports its capabilities, its machines, its volumes and its free units', async () => {
    const counted = say({
      id: '4',
      result: { answer: 'counted', free: [{ offer_id: 'o', datacenter: 'd', units: 2 }] },
    });
    const info = infoAnswer({ version: '1.2' });
    const listed = (id: string) => say({ id, result: { answer: 'listed', items: [] } });
    Object.assign((info as { result: { capabilities: object } }).result.capabilities, {
      inventory: true,
      attach_volume: 'hot',
    });
    const findings = await diagnosed(
      `read -r a; ${say(info)}; read -r b; ${listed('2')}; read -r c; ${listed('3')}; read -r d; ${counted}; ${LISTEN}`,
    );
    expect(findings.map(({ verdict, finding }) => [verdict, finding])).toEqual([
      ['ok', 'it is script 1.2 and answered info in 0 ms'],
      ['ok', expect.stringMatching(/^stop true, .*attach_volume hot.*inventory true/)],
      ['ok', 'it has 0 machines of Berth; that took 0 ms'],
      ['ok', 'it has 0 volumes of Berth; that took 0 ms'],
      ['ok', 'free units: 2 of o in d; that took 0 ms'],
    ]);
  });

  it('is broken, with a remedy, if it ends or gives an invalid answer', async () => {
    expect(await diagnosed('exit 3')).toMatchObject([
      { verdict: 'broken', finding: expect.stringContaining('exit code 3') },
    ]);
    const findings = await diagnosed(
      `${GREETING}; read -r b; ${say({ id: '2', result: { answer: 'perhaps' } })}; ${LISTEN}`,
    );
    expect(findings.at(-1)).toMatchObject({
      verdict: 'broken',
      remedy: expect.stringContaining('berth driver test'),
    });
  });

  it('is only a warning if it is silent, as it is while berth serve runs it', async () => {
    expect(await diagnosed(LISTEN, false)).toMatchObject([
      { verdict: 'warning', remedy: expect.stringContaining('berth serve') },
    ]);
  });

  it('is reported and killed before the check times out, if it does not exit either', async () => {
    const script = `${TELL_PID}; trap '' TERM; while :; do sleep 1; done`;
    await using program = prepareProgram(script);
    const { place, clock } = program;
    const options = exec.configSchema.parse({
      driver: 'exec',
      command: ['sh', '-c', script],
      environment: ['PLACE'],
    });
    const asking = { withinMs: 5_000, signal: new AbortController().signal };
    const env = { ...process.env, PLACE: place };
    const received: Diagnosis[] = [];
    const all = (async () => {
      for await (const finding of exec.diagnose?.(options, setting({ env, clock, asking })) ?? [])
        received.push(finding);
    })();
    await expect.poll(() => existsSync(join(place, 'pid'))).toBe(true);
    await clock.advance(5_900);
    await all;
    expect(received).toMatchObject([{ verdict: 'warning', remedy: expect.stringContaining('berth serve') }]);
    expect(isRunning(Number(readFileSync(join(place, 'pid'), 'utf8')))).toBe(false);
  });
});
