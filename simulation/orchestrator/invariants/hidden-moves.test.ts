import { expect, it } from 'vitest';
import { Scheduler } from '../../../test/support/time/scheduler.ts';
import { ServerProcess } from '../../kernel/process.ts';
import type { PlatformHost } from '../platform/hosts.ts';
import { HiddenMoves } from './hidden-moves.ts';
import { aMachine } from './samples.fixture.ts';

it('a move is hidden from the servers that ran when its host answered again, until they list the machines', () => {
  const [one, other, later] = ['r1', 'r2', 'r3'].map((name) => new ServerProcess(name, new Scheduler()));
  const host: PlatformHost = { name: 'n1', state: 'answers' };
  const hosts = { of: () => host };
  const machine = aMachine();
  const moves = new HiddenMoves();
  const hiddenFrom = () =>
    [one, other, later].map((server) => moves.isHidden(machine, server as ServerProcess));
  moves.moved(machine, host);
  expect(hiddenFrom()).toEqual([false, false, false]);
  moves.hostAnswers(host, [one, other] as ServerProcess[]);
  moves.listed(one as ServerProcess, hosts);
  moves.moved(machine, host);
  expect(hiddenFrom()).toEqual([false, true, false]);
  host.state = 'silent';
  moves.listed(other as ServerProcess, hosts);
  expect(hiddenFrom()).toEqual([false, true, false]);
  host.state = 'answers';
  moves.listed(other as ServerProcess, hosts);
  expect(hiddenFrom()).toEqual([false, false, false]);
});
