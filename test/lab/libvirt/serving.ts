import { afterEach, beforeEach, expect } from 'vitest';
import { generateKeyPair, type KeyPair, ssh } from '../../support/processes/openssh.ts';
import { LabServer } from '../lab-server.ts';
import { type LabHost, openLabHost } from './lab-host.ts';
import { catalogOf, offer, platformOf } from './platform.ts';

export type Machine = Record<string, unknown>;

/** A host and `berth serve` over it, anew for each test, so that none is about what another left. */
export function serveEachTest(units = 10) {
  let host: LabHost | undefined;
  let server: LabServer | undefined;
  let keys: [KeyPair, KeyPair];
  let opened = 0;
  beforeEach(async () => {
    host = await openLabHost(++opened);
    server = new LabServer(catalogOf(units), platformOf([host]));
    await server.start();
    keys = [await generateKeyPair(server.folder, 'ed25519'), await generateKeyPair(server.folder, 'ecdsa')];
  });
  afterEach(async () => {
    await server?.[Symbol.asyncDispose]();
    await host?.close();
    [host, server] = [undefined, undefined];
  });
  const lab = {
    get host(): LabHost {
      return there(host);
    },
    get server(): LabServer {
      return there(server);
    },
    get keys(): [KeyPair, KeyPair] {
      return keys;
    },
    request: (more: object = {}): object => ({
      ...offer,
      ssh_keys: keys.map(({ publicKey }) => publicKey),
      ...more,
    }),
    /** The path of a new instance. */
    create: (more?: object): Promise<string> => lab.server.create(lab.request(more)),
    online: (path: string): Promise<Machine> => lab.server.client.waitFor(path, 'ONLINE'),
    login: (machine: Machine, command: string, key = keys[0]) => ssh(machine, key, command),
    nothingIsLeft: (): Promise<void> => expect.poll(() => lab.host.contents()).toEqual([]),
  };
  return lab;
}

function there<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('this is there during a test');
  return value;
}
