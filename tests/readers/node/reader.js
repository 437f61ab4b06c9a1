// What eureka-js-client finds, as a line of JSON after "SEEN " whenever it changes.
//
// It gives the fields of an instance and makes no URL of them, so the port is chosen here as its
// callers have to: the secure one if it is enabled.
'use strict';

const { Eureka } = require('eureka-js-client');

const [url, apps, refreshSeconds] = process.argv.slice(2);
const eureka = new URL(url);
const silent = () => {};
const client = new Eureka({
  logger: { debug: silent, info: silent, warn: silent, error: console.error },
  instance: {
    app: 'reader',
    vipAddress: 'reader',
    port: { $: 1, '@enabled': true },
    dataCenterInfo: { '@class': 'com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo', name: 'MyOwn' },
  },
  eureka: {
    host: eureka.hostname,
    port: eureka.port,
    servicePath: `${eureka.pathname}/apps/`,
    registerWithEureka: false,
    registryFetchInterval: 1000 * Number(refreshSeconds),
  },
});

function seen(instance) {
  const secure = instance.securePort['@enabled'] === 'true';
  const port = secure ? instance.securePort : instance.port;
  return {
    host: instance.hostName,
    port: Number(port.$),
    secure,
    metadata: instance.metadata,
    status: instance.status,
  };
}

let before = '';
function tell() {
  const all = {};
  for (const app of apps.split(',')) {
    all[app] = client.getInstancesByVipAddress(app).map(seen);
  }
  const now = JSON.stringify({ 'eureka-js-client': all });
  if (now !== before) {
    console.log(`SEEN ${now}`);
    before = now;
  }
}

client.start((error) => {
  if (error) throw error;
  setInterval(tell, 100);
});
