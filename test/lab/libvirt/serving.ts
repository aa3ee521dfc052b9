import { afterEach, beforeEach, expect } from 'vitest';
import { LabServer, type Machine } from '../lab-server.ts';
import { type LabHost, openLabHost } from './lab-host.ts';
import { catalogOf, offer, platformOf } from './platform.ts';

/** A host and `berth serve` over it, anew for each test, so that none is about what another left. */
export function serveEachTest(units = 10) {
  let host: LabHost | undefined;
  let server: LabServer | undefined;
  let opened = 0;
  beforeEach(async () => {
    host = await openLabHost(++opened);
    server = new LabServer(catalogOf(units), platformOf([host]), offer);
    await server.start();
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
    create: (more?: object): Promise<string> => lab.server.create(more),
    online: (path: string): Promise<Machine> => lab.server.online(path),
    login: (...given: Parameters<LabServer['login']>) => lab.server.login(...given),
    nothingIsLeft: (): Promise<void> => expect.poll(() => lab.host.contents()).toEqual([]),
  };
  return lab;
}

function there<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('this is there during a test');
  return value;
}
