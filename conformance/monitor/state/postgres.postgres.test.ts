import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { testState } from './state.suite.ts';
import { openState } from './state.ts';

describe('the state in PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server[Symbol.asyncDispose]());

  testState(() => server.createDatabase());

  it('names the server that cannot be reached, and not the password', async () => {
    const url = 'postgres://monitor:secret@127.0.0.1:1/state';
    const error = await openState(url).catch((cause: Error) => cause);
    expect(String(error)).toMatch(/postgres:\/\/127\.0\.0\.1\/state cannot be opened/);
    expect(String(error)).not.toContain('secret');
  });
});
