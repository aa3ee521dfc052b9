import { describeTemplate } from './templates.suite.ts';

describeTemplate('node/driver.mjs', process.execPath);
