import type { Connection as AnyConnection } from '../../queries/connection.ts';
import type { marketplaceTables } from '../../schema/marketplace.ts';

type Tables = ReturnType<typeof marketplaceTables>;

export type Connection = AnyConnection<Tables>;
