import type { Reader, Transaction } from '../../../marketplace/model/store.ts';
import { alarmReader, alarmWriter, noticeReader, noticeWriter } from '../../queries/alarms.ts';
import { figureReader, figureWriter } from '../../queries/figures.ts';
import {
  auditReader,
  auditWriter,
  operatorKeyReader,
  operatorKeyWriter,
  operatorSessionReader,
  operatorSessionWriter,
} from '../../queries/operators.ts';
import { withErrors } from '../../queries/with-errors.ts';
import { type Notifications, noNotifications, signalWriter } from '../row-signals.ts';
import { catalogReader, catalogWriter } from './catalogs.ts';
import type { Connection } from './connection.ts';
import { deploymentReader, deploymentWriter } from './deployments.ts';
import { idempotencyReader, idempotencyWriter } from './idempotency.ts';
import { leaseWriter, settingReader, settingWriter } from './leases.ts';
import { ledgerReader, ledgerWriter } from './ledger.ts';
import { lossReader, lossWriter } from './losses.ts';
import { mailReader, mailWriter, stockAlertReader, stockAlertWriter } from './mail.ts';
import { pauseReader, pauseWriter } from './sales-pauses.ts';
import { discountReader, discountWriter, teamReader, teamWriter } from './teams.ts';
import { keyReader, keyWriter, sshKeyReader, sshKeyWriter, userReader, userWriter } from './users.ts';
import { volumeReader, volumeWriter } from './volumes.ts';

/** `toCoreError` translates a query's error into one that the core handles. */
export function readerOn(connection: Connection, toCoreError: (error: unknown) => unknown): Reader {
  const translated = <Repository extends object>(repository: Repository): Repository =>
    withErrors(repository, toCoreError);
  return {
    users: translated(userReader(connection)),
    keys: translated(keyReader(connection)),
    teams: translated(teamReader(connection)),
    discounts: translated(discountReader(connection)),
    stockAlerts: translated(stockAlertReader(connection)),
    sshKeys: translated(sshKeyReader(connection)),
    deployments: translated(deploymentReader(connection)),
    volumes: translated(volumeReader(connection)),
    ledger: translated(ledgerReader(connection)),
    losses: translated(lossReader(connection)),
    mail: translated(mailReader(connection)),
    catalogs: translated(catalogReader(connection)),
    settings: translated(settingReader(connection)),
    pauses: translated(pauseReader(connection)),
    idempotency: translated(idempotencyReader(connection)),
    operatorKeys: translated(operatorKeyReader(connection)),
    operatorSessions: translated(operatorSessionReader(connection)),
    audit: translated(auditReader(connection)),
    figures: translated(figureReader(connection)),
    alarms: translated(alarmReader(connection)),
    alarmNotices: translated(noticeReader(connection)),
  };
}

/** `notifications` collects the notifications to be sent after the commit. */
export function transactionOn(
  connection: Connection,
  notifications: Notifications = noNotifications(),
): Transaction {
  const changed = (id: string) => void notifications.changed.add(id);
  return {
    users: userWriter(connection),
    keys: keyWriter(connection, changed),
    teams: teamWriter(connection),
    discounts: discountWriter(connection),
    stockAlerts: stockAlertWriter(connection),
    sshKeys: sshKeyWriter(connection),
    deployments: deploymentWriter(connection, changed),
    volumes: volumeWriter(connection, changed),
    ledger: ledgerWriter(connection),
    losses: lossWriter(connection),
    mail: mailWriter(connection),
    catalogs: catalogWriter(connection),
    leases: leaseWriter(connection),
    signals: signalWriter(notifications),
    settings: settingWriter(connection),
    pauses: pauseWriter(connection),
    idempotency: idempotencyWriter(connection),
    operatorKeys: operatorKeyWriter(connection),
    operatorSessions: operatorSessionWriter(connection),
    audit: auditWriter(connection),
    figures: figureWriter(connection),
    alarms: alarmWriter(connection),
    alarmNotices: noticeWriter(connection),
  };
}
